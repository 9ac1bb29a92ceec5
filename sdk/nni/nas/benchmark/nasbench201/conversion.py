"""Converter of the original file of NAS-Bench-201, as version 1.1 publishes it for torch.

`python -m nni.nas.benchmark.nasbench201.conversion NAS-Bench-201-v1_1-096897.pth`

The file holds nested dictionaries, numbers and tensors, and is opened as such: what would run code
is refused. `arch2infos` has for each cell the results of 12 epochs (`less`) and of 200 (`full`), by
data set and seed; evaluations have keys such as `x-valid@11`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nni.nas.benchmark.conversion_command import run_conversion
from nni.nas.benchmark.nasbench201.records import (
    NB201_SCHEMA,
    Nb201IntermediateStats,
    Nb201TrialConfig,
    Nb201TrialStats,
)
from nni.nas.benchmark.writer import BenchmarkWriter

_EDGE: Final = re.compile(r"(?:nor_)?(\w+)~(\d)")
_VALID: Final = ("x-valid", "x-test", "ori-test")
_TEST: Final = ("x-test", "ori-test")
_ORIGINAL_TEST: Final = ("ori-test",)
"""Splits in the order of preference: `cifar10` was evaluated on its original test set only."""


def architecture_of(text: str) -> dict[str, str]:
    """Return the operation of each edge, such as `0_1`, from a cell in the original notation.

    Args:
        text: nodes separated by `+`, each a list of `|operation~source|`.

    Examples:
        >>> architecture_of("|nor_conv_1x1~0|+|none~0|none~1|+|none~0|none~1|skip_connect~2|")
        {'0_1': 'conv_1x1', '0_2': 'none', '1_2': 'none', '0_3': 'none', ..., '2_3': 'skip_connect'}
    """
    return {
        f"{source}_{node}": operation
        for node, edges in enumerate(text.split("+"), start=1)
        for operation, source in _EDGE.findall(edges)
    }


def convert_nasbench201(source: Path, writer: BenchmarkWriter) -> None:
    """Load an original file by torch; add its trainings, with all epochs, to a database.

    Args:
        source: file of version 1.1 of the benchmark.
        writer: writer of an empty database.

    Raises:
        ValueError: the file has another format.
    """
    import torch

    content = torch.load(source, map_location="cpu", weights_only=True)
    if not isinstance(content, Mapping) or "arch2infos" not in content:
        raise ValueError(f"{source} is no file of NAS-Bench-201: it has no entry arch2infos")
    for infos in content["arch2infos"].values():
        for schedule in ("less", "full"):
            results = infos[schedule]
            arch = architecture_of(results["arch_str"])
            for (dataset, seed), trial in results["all_results"].items():
                _add(writer, arch, dataset.lower(), int(seed), trial)


def _add(
    writer: BenchmarkWriter, arch: dict[str, str], dataset: str, seed: int, trial: Mapping[str, Any]
) -> None:
    epochs = int(trial["epochs"])
    config = Nb201TrialConfig(
        arch,
        epochs,
        int(trial["arch_config"]["channel"]),
        int(trial["arch_config"]["num_cells"]),
        dataset,
    )
    last = epochs - 1
    latency = trial.get("latency") or [0.0]
    stats = Nb201TrialStats(
        config=config,
        seed=seed,
        parameters=float(trial["params"]),
        latency=sum(map(float, latency)) / len(latency),
        flops=float(trial["flop"]),
        training_time=sum(map(float, trial["train_times"].values())),
        valid_evaluation_time=_evaluated(trial, "times", _VALID, last),
        test_evaluation_time=_evaluated(trial, "times", _TEST, last),
        ori_test_evaluation_time=_evaluated(trial, "times", _ORIGINAL_TEST, last),
        **_measured(trial, last),
    )
    writer.add(
        stats,
        (
            Nb201IntermediateStats(trial=stats, current_epoch=epoch + 1, **_measured(trial, epoch))
            for epoch in range(epochs)
        ),
    )


def _measured(trial: Mapping[str, Any], epoch: int) -> dict[str, Any]:
    """Return accuracies and losses after an epoch, by field; None for what was not measured."""
    found = {}
    for kind, ending in (("acc1es", "acc"), ("losses", "loss")):
        trained = trial[f"train_{kind}"].get(epoch)
        found[f"train_{ending}"] = None if trained is None else float(trained)
        found[f"valid_{ending}"] = _evaluated(trial, kind, _VALID, epoch)
        found[f"test_{ending}"] = _evaluated(trial, kind, _TEST, epoch)
        found[f"ori_test_{ending}"] = _evaluated(trial, kind, _ORIGINAL_TEST, epoch)
    return found


def _evaluated(trial: Mapping[str, Any], kind: str, splits: tuple[str, ...], epoch: int) -> Any:  # noqa: ANN401 - a number, or None in the course of a training
    values = trial[f"eval_{kind}"]
    found = (values[key] for split in splits if (key := f"{split}@{epoch}") in values)
    value = next(found, None)
    return None if value is None else float(value)


if __name__ == "__main__":
    sys.exit(run_conversion(convert_nasbench201, NB201_SCHEMA, "NAS-Bench-201-v1_1-096897.pth"))
