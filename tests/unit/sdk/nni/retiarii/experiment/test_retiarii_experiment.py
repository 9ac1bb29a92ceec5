"""Experiment of NNI 2.x."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import nni
import nni.retiarii.nn.pytorch as legacy
from nni.retiarii import fixed_arch, model_wrapper, strategy
from nni.retiarii.deprecation import warn_once
from nni.retiarii.evaluator import FunctionalEvaluator
from nni.retiarii.experiment.pytorch import RetiariiExeConfig, RetiariiExperiment
from nni.retiarii.oneshot import BaseOneShotTrainer

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

with warnings.catch_warnings(action="ignore"):

    @model_wrapper
    class Net(nn.Module):
        """Network with six architectures."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = legacy.LayerChoice([nn.Identity(), nn.ReLU()])
            self.skip = legacy.InputChoice(3)

    def width_of(model_cls: Callable[[], Any]) -> None:
        """Report the position of the chosen input, plus a half for the second layer."""
        model = model_cls()
        nni.report_final_result(model.skip.chosen[0] + isinstance(model.layer, nn.ReLU) / 2)


class Trainer(BaseOneShotTrainer):
    """One-shot trainer that counts its calls."""

    def __init__(self) -> None:
        self.fitted = 0

    def fit(self) -> None:
        self.fitted += 1

    def export(self) -> dict[str, str]:
        return {"layer": "1"}


@pytest.fixture
def config(tmp_path: Path) -> RetiariiExeConfig:
    """Return a configuration of a search in this process."""
    return RetiariiExeConfig(execution_engine="sequential", experiment_working_directory=tmp_path)


@pytest.fixture
def searched(config: RetiariiExeConfig) -> RetiariiExperiment:
    """Return an experiment that has evaluated all models."""
    experiment = RetiariiExperiment(Net(), FunctionalEvaluator(width_of), [], strategy.GridSearch())
    assert experiment.run(config, 8081)
    experiment.stop()
    return experiment


def test_best_models_are_exported_as_architectures_of_their_time(
    searched: RetiariiExperiment,
) -> None:
    best = searched.export_top_models(2, formatter="dict")

    assert best == [
        {"_mutation_1": "1", "_mutation_2": 2},
        {"_mutation_1": "0", "_mutation_2": 2},
    ]


def test_exported_architecture_is_one_of_fixed_arch(searched: RetiariiExperiment) -> None:
    with fixed_arch(searched.export_top_models()[0]):
        network: Any = Net()

    assert isinstance(network.layer, nn.ReLU)
    assert network.skip.chosen == [2]


def test_least_metric_is_the_best_of_a_minimization(searched: RetiariiExperiment) -> None:
    assert searched.export_top_models(1, "minimize") == [{"_mutation_1": "0", "_mutation_2": 0}]


def test_other_forms_are_those_of_the_newer_experiment(searched: RetiariiExperiment) -> None:
    [network] = searched.export_top_models(formatter="instance")

    assert isinstance(network.layer, nn.ReLU)


@pytest.mark.parametrize("wrong", [{"optimize_mode": "max"}, {"formatter": "xml"}])
def test_unknown_arguments_of_an_export_are_refused(
    searched: RetiariiExperiment, wrong: Any
) -> None:
    with pytest.raises(ValueError, match="must be"):
        searched.export_top_models(**wrong)


def test_search_that_did_not_run_has_no_models() -> None:
    experiment = RetiariiExperiment(Net(), None, strategy=strategy.Random())
    experiment.stop()

    with pytest.raises(RuntimeError, match="did not run"):
        experiment.export_top_models()


@pytest.mark.claim("nas", 87)
def test_one_shot_trainer_is_fitted_and_nothing_else(config: RetiariiExeConfig) -> None:
    trainer = Trainer()
    experiment = RetiariiExperiment(Net(), trainer)

    assert experiment.run(config, 8081)
    assert trainer.fitted == 1
    assert experiment.config is None
    assert experiment.export_top_models() == [{"layer": "1"}]
    with pytest.raises(ValueError, match="top_k must be 1"):
        experiment.export_top_models(2)


def test_wrong_arguments_are_refused(config: RetiariiExeConfig) -> None:
    with pytest.raises(TypeError, match="strategy must be an object"):
        RetiariiExperiment(Net(), FunctionalEvaluator(width_of))
    with pytest.raises(TypeError, match="config must be a RetiariiExeConfig"):
        RetiariiExperiment(Net(), None, [], strategy.Random()).run()
    config.execution_engine = "benchmark"
    with pytest.raises(ValueError, match="benchmark must be one of 'nasbench101'"):
        RetiariiExperiment(Net(), None, [], strategy.Random()).run(config)


def test_experiment_warns_of_the_newer_name_once() -> None:
    warn_once.cache_clear()

    with pytest.warns(DeprecationWarning, match="NasExperiment") as caught:
        _ = [RetiariiExperiment(nn.Identity(), Trainer()) for _ in range(2)]

    assert len(caught) == 1
