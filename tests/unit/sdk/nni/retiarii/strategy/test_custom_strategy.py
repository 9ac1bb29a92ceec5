"""Strategies of one's own in NNI 2.x."""

import random
from typing import Any

import pytest

import nni
from nni.mutable import Categorical
from nni.nas.space import RawFormatModelSpace
from nni.nas.strategy.base import StrategyStatus
from nni.retiarii import Sampler
from nni.retiarii.execution import query_available_resources, submit_models
from nni.retiarii.experiment.pytorch import RetiariiExeConfig, RetiariiExperiment
from nni.retiarii.strategy import BaseStrategy
from nni.retiarii.strategy.custom_strategy import CustomStrategy
from nni.testing.strategies import SimulatedEngine, TableSpace
from tests.support.mutated_networks import LINEAR, WIDTHS, BlockMutator, MutatedNet

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class RandomSampler(Sampler):
    """Sampler of the documentation of NNI 2.x."""

    def choice(self, candidates: Any, mutator: Any, model: Any, index: int) -> Any:
        return random.choice(candidates)


class RandomStrategy(BaseStrategy):
    """Strategy of the documentation of NNI 2.x, which ends at no time by itself."""

    def __init__(self) -> None:
        self.random_sampler = RandomSampler()

    def run(self, base_model: Any, applied_mutators: Any) -> None:
        while True:
            avail_resource = query_available_resources()
            if avail_resource > 0:
                model = base_model
                for mutator in applied_mutators:
                    mutator.bind_sampler(self.random_sampler)
                    model = mutator.apply(model)
                submit_models(model)


class Evaluating:
    """Evaluator whose metric is the width of a network."""

    def evaluate(self, model: Any) -> None:
        nni.report_final_result(next(iter(model.parameters())).shape[0])


def test_strategy_of_the_documentation_searches(tmp_path: Any) -> None:
    random.seed(0)
    experiment = RetiariiExperiment(
        MutatedNet(), Evaluating(), [BlockMutator("block")], RandomStrategy()
    )
    config = RetiariiExeConfig(
        execution_engine="sequential", experiment_working_directory=tmp_path, max_trial_number=8
    )

    assert experiment.run(config)
    experiment.stop()

    [best] = experiment.export_top_models()
    [operation] = best.values()
    # All of eight models have the smaller width with a chance of 1 in 256; the seed is fixed.
    assert (operation.type, operation.parameters["out_features"]) == (LINEAR, max(WIDTHS))
    assert "out_features=5" in experiment.export_top_models(formatter="code")[0]


def test_pure_python_engine_takes_no_mutators() -> None:
    experiment = RetiariiExperiment(
        MutatedNet(), Evaluating(), [BlockMutator("block")], RandomStrategy()
    )

    with pytest.raises(ValueError, match="execution_engine must be 'base' or 'cgo' with mutators"):
        experiment.run(RetiariiExeConfig("local"))


def test_models_of_another_format_are_refused() -> None:
    strategy = CustomStrategy(RandomStrategy())
    space = RawFormatModelSpace(TableSpace(Categorical([1], label="a")))

    with pytest.raises(TypeError, match="RandomStrategy works on graphs"):
        strategy.initialize(space, SimulatedEngine(lambda _: 1.0))
    assert strategy.status is StrategyStatus.Empty
    assert strategy.state_dict() == {}
    strategy.load_state_dict({})
