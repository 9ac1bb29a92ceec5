"""One-shot strategies search in an experiment, in this process and without any service."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch import nn

import nni
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment
from nni.nas.strategy.oneshot import DARTS, ENAS, OneShotStrategy, Proxyless, RandomOneShot
from nni.nas.strategy.regularized_evolution import RegularizedEvolution
from nni.testing.oneshot_strategies import (
    BranchSpace,
    OneShotStrategyConformance,
    quiet_lightning,
)

STRATEGIES: dict[str, Callable[[], OneShotStrategy]] = {
    "DARTS": lambda: DARTS(arc_learning_rate=0.05),
    "RandomOneShot": RandomOneShot,
    "ENAS": lambda: ENAS(batches_per_update=4, reward_metric_name="default"),
    "Proxyless": lambda: Proxyless(arc_learning_rate=0.05),
}
Make = Callable[..., NasExperiment]


class Evaluators(OneShotStrategyConformance):
    """Source of the evaluator of the suite."""

    def make(self) -> OneShotStrategy:
        return DARTS()


class Killed(pl.Callback):
    """End of the process at the start of an epoch, after which nothing of the search runs."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        if trainer.current_epoch == self.epoch:
            raise KilledError


class KilledError(BaseException):
    """Raised in place of a kill."""


def strategy_of(experiment: NasExperiment) -> OneShotStrategy:
    """Return the strategy of an experiment as the one-shot strategy that it is."""
    assert isinstance(experiment.strategy, OneShotStrategy)
    return experiment.strategy


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Return a constructor of experiments that are stopped at the end of the test."""
    made: list[NasExperiment] = []

    def build(
        strategy: OneShotStrategy,
        epochs: int,
        id: str | None = None,  # noqa: A002 - name of the argument
        space: BranchSpace | None = None,
        **trainer: Any,
    ) -> NasExperiment:
        trainer = {"enable_checkpointing": True, "default_root_dir": str(tmp_path), **trainer}
        evaluator = Evaluators().evaluator(epochs, **trainer)
        experiment = NasExperiment(space or BranchSpace(), evaluator, strategy, id=id)
        experiment.config.experiment_working_directory = tmp_path
        made.append(experiment)
        return experiment

    with torch.random.fork_rng(devices=[]), quiet_lightning():
        torch.manual_seed(0)
        yield build
        for experiment in made:
            experiment.stop()


@pytest.mark.parametrize("name", STRATEGIES)
def test_search_exports_a_sample_and_a_network_with_its_weights(make: Make, name: str) -> None:
    experiment = make(STRATEGIES[name](), 1)

    ended = experiment.run()

    assert ended is True
    (sample,) = experiment.export_top_models(formatter="dict")
    assert BranchSpace().contains(sample)
    (network,) = experiment.export_top_models(formatter="instance")
    assert network(torch.ones(1, 2)).shape == (1, 1)
    line = strategy_of(experiment).supernet.freeze({"branch": "line"}).branch
    assert torch.equal(line.weight, experiment.model_space.branch["line"].weight)


@pytest.mark.parametrize("name", STRATEGIES)
def test_search_runs_without_any_service(make: Make, name: str) -> None:
    experiment = make(STRATEGIES[name](), 1)

    experiment.run()

    engine, model_format = experiment.config.execution_engine, experiment.config.model_format
    assert (engine.name, model_format.name) == ("sequential", "raw")
    with pytest.raises(RuntimeError, match="needs no manager"):
        _ = experiment.tuner_command_channel


@pytest.mark.parametrize("name", STRATEGIES)
def test_resumed_search_trains_the_remaining_epochs(make: Make, name: str) -> None:
    first = make(STRATEGIES[name](), 1)
    first.run()
    first.stop()

    second = make(STRATEGIES[name](), 3, first.id)
    assert second.resume() is True

    module = strategy_of(second).oneshot_module
    assert module.current_epoch == 3
    assert module.trainer.fit_loop.epoch_progress.total.completed == 3


@pytest.mark.parametrize("name", STRATEGIES)
def test_killed_search_continues_after_its_last_whole_epoch(make: Make, name: str) -> None:
    callbacks = [Killed(epoch=2)]
    first = make(STRATEGIES[name](), 4, callbacks=callbacks)
    with pytest.raises(KilledError):
        first.run()
    epochs: list[int] = []

    class Counted(pl.Callback):
        def on_train_epoch_start(self, trainer: pl.Trainer, module: nn.Module) -> None:
            epochs.append(trainer.current_epoch)

    second = make(STRATEGIES[name](), 4, first.id, callbacks=[Counted()])
    second.resume()

    assert epochs == [2, 3]


@pytest.mark.parametrize("name", ["DARTS", "ENAS"])
def test_resumed_search_ends_as_one_that_was_not_killed(make: Make, name: str) -> None:
    torch.manual_seed(1)
    whole = make(STRATEGIES[name](), 2)
    whole.run()
    torch.manual_seed(1)
    first = make(STRATEGIES[name](), 1)
    first.run()
    second = make(STRATEGIES[name](), 2, first.id)
    second.resume()

    ours, theirs = (one.export_top_models(formatter="dict") for one in (whole, second))

    assert ours == theirs


@pytest.mark.parametrize("name", STRATEGIES)
def test_viewed_search_exports_the_network_of_its_checkpoint(make: Make, name: str) -> None:
    first = make(STRATEGIES[name](), 2)
    first.run()
    first.stop()
    weight = first.model_space.branch["line"].weight

    second = make(STRATEGIES[name](), 2, first.id)
    second.view(non_blocking=True)

    if name != "RandomOneShot":  # it prefers none
        exported = [one.export_top_models(formatter="dict") for one in (first, second)]
        assert exported[0] == exported[1]
    second.export_top_models(formatter="instance")
    assert torch.equal(second.model_space.branch["line"].weight, weight)


def report_error(network: nn.Module) -> None:
    """Report how well a network adds two numbers, without a training."""
    inputs = torch.randn(32, 2, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        error = nn.functional.mse_loss(network(inputs), inputs.sum(1, keepdim=True))
    nni.report_final_result(-error.item())


def test_supernet_is_searched_by_a_second_experiment(make: Make, tmp_path: Path) -> None:
    space = BranchSpace()
    make(RandomOneShot(), 20, space=space).run()
    weight = space.branch["line"].weight.clone()

    strategy = RegularizedEvolution(population_size=2, sample_size=1, seed=0)
    search = NasExperiment(space, FunctionalEvaluator(report_error), strategy)
    search.config.experiment_working_directory = tmp_path
    search.run()
    search.stop()

    assert search.export_top_models(formatter="dict") == [{"branch": "line"}]
    (best,) = search.export_top_models(formatter="instance")
    assert torch.equal(best.branch.weight, weight)
