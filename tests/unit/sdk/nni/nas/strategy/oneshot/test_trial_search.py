"""One-shot searches that are one trial."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from nni.nas.execution import TrainingServiceExecutionEngine
from nni.nas.execution.candidate import model_from, parameters_of
from nni.nas.space import ExecutableModelSpace, ModelStatus, RawFormatModelSpace
from nni.nas.strategy.oneshot import DARTS, ENAS, OneShotStrategy, Proxyless, RandomOneShot
from nni.nas.strategy.oneshot.trial_search import (
    FOLDER,
    OneTrialStrategy,
    SupernetSearch,
    newest_checkpoint,
    search_in_trial,
)
from nni.testing.oneshot_strategies import quiet_lightning
from tests.support.in_memory_trials import InMemoryTrials
from tests.support.lightning_tasks import reports_of
from tests.support.supernet_trials import (
    Branches,
    KilledBefore,
    KilledError,
    KilledIn,
    branches,
    shuffled,
)

STRATEGIES: dict[str, Callable[[], OneShotStrategy]] = {
    "DARTS": DARTS,
    "RandomOneShot": RandomOneShot,
    "ENAS": lambda: ENAS(batches_per_update=2, reward_metric_name="val_acc"),
    "Proxyless": Proxyless,
}


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]), quiet_lightning():
        torch.manual_seed(0)
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the trial, of which the environment tells."""
    monkeypatch.setenv("NNI_OUTPUT_DIR", str(tmp_path / "trials" / "first"))
    return tmp_path / "trials" / "first"


def travelled(
    strategy: OneShotStrategy, epochs: int, callbacks: list[Any] | None = None
) -> ExecutableModelSpace:
    """Return a search as its trial gets it."""
    search = SupernetSearch.of(branches(epochs, callbacks), strategy)
    return model_from(json.loads(json.dumps(parameters_of(search))))


def attempt(*parts: Any) -> tuple[list[Any], list[Any]]:
    """Return the intermediate results and the results of one attempt."""
    return reports_of(travelled(*parts).execute)


@pytest.mark.parametrize("name", STRATEGIES)
def test_trial_reports_each_epoch_and_the_architecture(name: str, folder: Path) -> None:
    intermediates, finals = attempt(STRATEGIES[name](), 2)

    assert len(intermediates) == 2
    (result,) = finals
    assert result["architecture"]["branch"] in {"line", "plain"}
    assert isinstance(result["default"], float)
    assert newest_checkpoint(folder) is not None


@pytest.mark.parametrize("name", STRATEGIES)
def test_attempt_after_a_kill_trains_the_remaining_epochs_only(name: str, folder: Path) -> None:
    del folder
    with pytest.raises(KilledError):
        attempt(STRATEGIES[name](), 3, [KilledIn(1)])

    # It fails in epoch 0 if that is trained again.
    intermediates, finals = attempt(STRATEGIES[name](), 3, [KilledIn(0)])

    assert len(intermediates) == 3
    assert len(finals) == 1


def test_attempt_after_a_kill_ends_as_one_that_was_not_killed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del folder
    torch.manual_seed(1)
    with pytest.raises(KilledError):
        attempt(DARTS(), 3, [KilledIn(1)])
    resumed = attempt(DARTS(), 3)

    monkeypatch.setenv("NNI_OUTPUT_DIR", str(tmp_path / "others" / "whole"))
    torch.manual_seed(1)
    whole = attempt(DARTS(), 3)

    assert resumed == whole


def trained(
    strategy: OneShotStrategy, folder: Path, seed: int, killed: KilledBefore | None = None
) -> tuple[list[Any], list[Any], list[int]]:
    """Run an attempt with a checkpoint after each batch; return its reports and saved steps."""
    torch.manual_seed(seed)
    random.seed(seed)
    search = SupernetSearch.of(shuffled([] if killed is None else [killed]), strategy)
    steps: list[int] = []
    results: list[Any] = []
    intermediates, _ = reports_of(
        lambda: results.append(search_in_trial(search, folder, steps.append, every_s=0.0))
    )
    return intermediates, results, steps


def weights(folder: Path) -> dict[str, torch.Tensor]:
    content: dict[str, torch.Tensor] = torch.load(folder / FOLDER / "last.ckpt")["state_dict"]
    return content


@pytest.mark.parametrize("name", ["DARTS", "RandomOneShot", "Proxyless"])
def test_attempt_after_a_kill_within_an_epoch_trains_the_batches_that_are_left(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(KilledError):
        trained(STRATEGIES[name](), tmp_path / "killed/one", 1, KilledBefore(1, 3))
    resumed = trained(STRATEGIES[name](), tmp_path / "killed/one", 2, KilledBefore(1, 2))
    whole = trained(STRATEGIES[name](), tmp_path / "whole/one", 1)

    # Means over the epoch, as of DARTS, are those of its rest.
    assert resumed[0][0] == whole[0][0]
    assert len(resumed[0]) == len(whole[0]) == 2
    assert resumed[1][0]["architecture"] == whole[1][0]["architecture"]
    assert resumed[2] == whole[2][-len(resumed[2]) :]
    again, at_once = weights(tmp_path / "killed/one"), weights(tmp_path / "whole/one")
    assert all(torch.equal(value, at_once[name]) for name, value in again.items())


def test_policy_goes_on_within_an_epoch(tmp_path: Path) -> None:
    strategy = STRATEGIES["ENAS"]
    with pytest.raises(KilledError):
        trained(strategy(), tmp_path, 1, KilledBefore(0, 5))

    intermediates, results, _ = trained(strategy(), tmp_path, 2, KilledBefore(0, 4))

    assert len(intermediates) == 2
    assert results[0]["architecture"]["branch"] in {"line", "plain"}


def test_attempt_after_the_last_epoch_reports_without_a_training(folder: Path) -> None:
    del folder
    intermediates, _ = attempt(DARTS(), 2)

    again, finals = attempt(DARTS(), 2, [KilledIn(0), KilledIn(1)])

    assert again == intermediates
    assert finals[0]["default"] == intermediates[-1]["default"]


def test_next_trial_of_a_resumed_experiment_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt(DARTS(), 1)
    monkeypatch.setenv("NNI_OUTPUT_DIR", str(folder.parent / "second"))

    intermediates, _ = attempt(DARTS(), 2, [KilledIn(0)])

    assert len(intermediates) == 2


def test_own_checkpoint_comes_before_those_of_other_trials(folder: Path) -> None:
    paths = {}
    for number, name in enumerate(["first", "older", "newer"]):
        path = paths[name] = folder.parent / name / FOLDER / "last.ckpt"
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (number, number))

    assert newest_checkpoint(folder) == str(paths["first"])
    assert newest_checkpoint(folder.parent / "next") == str(paths["newer"])


def test_search_without_a_folder_writes_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NNI_OUTPUT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)

    _, finals = attempt(RandomOneShot(), 1)

    assert len(finals) == 1
    assert list(tmp_path.iterdir()) == []


def test_strategy_submits_the_search_and_lists_its_architecture() -> None:
    trials = InMemoryTrials()
    engine = TrainingServiceExecutionEngine(trials)
    strategy = OneTrialStrategy(DARTS())
    strategy.initialize(branches(), engine)

    strategy.run()
    ((key, parameters),) = trials.log.parameters.items()
    trials.log.finish(key, {"default": 0.5, "architecture": {"branch": "plain"}})
    engine.wait_models()
    (model,) = strategy.list_models()
    engine.shutdown()

    assert parameters["sample"] == {}
    assert (model.sample, model.metric) == ({"branch": "plain"}, 0.5)
    assert model.status is ModelStatus.Trained
    assert model.executable_model().branch.bias is None


def test_result_that_was_counted_before_is_not_counted_again() -> None:
    trials = InMemoryTrials()
    search = SupernetSearch.of(branches(), DARTS())
    parameters = parameters_of(search)
    trials.add("k", parameters)
    trials.log.finish("k", {"default": 0.5, "architecture": {"branch": "plain"}})
    counted = branches().freeze({"branch": "plain"})
    engine = TrainingServiceExecutionEngine(trials)

    engine.load_state_dict({"experiment_id": "experiment"})
    engine.restore_models([counted])
    engine.start()
    engine.wait_models()
    models = list(engine.list_models())
    engine.shutdown()

    assert models == []


def test_other_formats_are_refused() -> None:
    strategy = OneTrialStrategy(DARTS())

    with pytest.raises(TypeError, match="DARTS in a trial needs the simplified format"):
        strategy.initialize(
            RawFormatModelSpace(Branches()), TrainingServiceExecutionEngine(InMemoryTrials())
        )
