"""What does a callback of a training loop cost per reported step, above the report itself?

CPU time of the median of ten rounds of 1,000 steps, with a trial channel that drops the reports;
the same number of `nni.report_intermediate_result` is subtracted. The libraries' own objects are
used where there are any.

./dev bench ecosystem
"""

import time
from collections.abc import Callable
from statistics import median
from types import SimpleNamespace

import torch
from lightgbm.callback import CallbackEnv
from pytorch_lightning import Trainer

import nni
from nni.integrations import (
    CatBoostCallback,
    LightGBMCallback,
    LightningCallback,
    XGBoostCallback,
)
from nni.trial.api import exchange_channel
from nni.trial.ports import MetricType
from tests.benchmarks.figures import Figure, at_most, print_figures

STEPS = 1_000
ROUNDS = 10
LIMIT_MS = 0.1


class _DroppingTrialChannel:
    """Trial channel that drops the reports."""

    def parameters(self, index: int) -> object:
        del index
        return {}

    def report(self, kind: MetricType, value: object) -> None:
        del kind, value


def milliseconds(step: Callable[[], object]) -> float:
    """Return the CPU time of one call, the median of the rounds."""
    found = []
    for _ in range(ROUNDS):
        begin_s = time.process_time()
        for _ in range(STEPS):
            step()
        found.append((time.process_time() - begin_s) / STEPS * 1e3)
    return median(found)


def steps() -> dict[str, Callable[[], object]]:
    """Return what each library calls for a step."""
    lightning = LightningCallback("val_loss")
    trainer = Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    trainer._logger_connector._callback_metrics = {"val_loss": torch.tensor(0.5)}
    results = [("valid_0", "l2", 0.5, False), ("valid_0", "l1", 0.5, False)]
    env = CallbackEnv(None, {}, 1, 0, 10**9, results)  # type: ignore[arg-type]  # no model is needed
    log = {"train": {"rmse": [0.5]}, "validation": {"rmse": [0.5]}}
    info = SimpleNamespace(iteration=1, metrics=log)
    lightgbm, xgboost = LightGBMCallback("valid_0-l2"), XGBoostCallback("validation-rmse")
    catboost = CatBoostCallback("validation-rmse")
    return {
        "Lightning": lambda: lightning._report(trainer),
        "LightGBM": lambda: lightgbm(env),
        "XGBoost": lambda: xgboost.after_iteration(None, 0, log),
        "CatBoost": lambda: catboost.after_iteration(info),
    }


def main() -> None:
    """Measure each callback, and print the table."""
    bring_back = exchange_channel(_DroppingTrialChannel(), strict=False)
    alone = milliseconds(lambda: nni.report_intermediate_result(0.5))
    figures: list[Figure] = [
        at_most(name, milliseconds(step) - alone, LIMIT_MS, " ms", "CPU time per step")
        for name, step in steps().items()
    ]
    bring_back()
    print_figures(figures)


if __name__ == "__main__":
    main()
