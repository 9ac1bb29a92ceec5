"""Single-path one-shot: a supernet trained with uniformly sampled paths."""

import random
from typing import Any

import pytest
import torch

from nni.mutable import Sample
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.space import RawFormatModelSpace
from nni.nas.strategy import RegularizedEvolution
from nni.nas.strategy.oneshot import RandomOneShot
from nni.testing.oneshot_strategies import quiet_lightning
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Branches, Everything
from tests.unit.sdk.nni.nas.strategy.oneshot.test_base import evaluator


class Depth:
    """Profiler whose cost is the depth."""

    def profile(self, sample: Sample) -> float:
        return float(sample["depth"])


def test_filter_bounds_the_paths() -> None:
    strategy = RandomOneShot(filter={"profiler": Depth(), "max": 2})
    strategy.mutate_model(Everything())

    assert {strategy.sampler.draw()["depth"] for _ in range(30)} == {1, 2}


@pytest.mark.claim("nas", 56)
def test_filter_that_nothing_satisfies_ends_the_search() -> None:
    strategy = RandomOneShot(filter={"profiler": Depth(), "max": 0})
    strategy.mutate_model(Everything())

    with pytest.raises(RuntimeError, match="none of 100 random architectures"):
        strategy.sampler.draw()


def test_weights_are_restored_in_a_new_supernet() -> None:
    torch.manual_seed(0)
    first, second = (RandomOneShot().mutate_model(Everything()) for _ in range(2))
    sample = first.random_sample(random_state=random.Random(1))

    second.load_state_dict(first.state_dict())

    inputs = torch.ones(1, 3)
    torch.testing.assert_close(second.freeze(sample)(inputs), first.freeze(sample)(inputs))


def test_export_warns_that_it_is_random() -> None:
    strategy = RandomOneShot()
    space = RawFormatModelSpace(Branches(), evaluator())
    with quiet_lightning():
        strategy(space, SequentialExecutionEngine())

    with pytest.warns(UserWarning, match="exports a random one"):
        sample = strategy.export()
    assert space.contains(sample)


def test_second_strategy_searches_the_trained_supernet() -> None:
    torch.manual_seed(0)
    space = Branches()
    with quiet_lightning():
        RandomOneShot()(
            RawFormatModelSpace(space, evaluator(max_epochs=15, learning_rate=0.1)),
            SequentialExecutionEngine(),
        )
        weights = {name: value.clone() for name, value in space.state_dict().items()}

        def negative(metric: Any) -> float:
            return -float(metric)

        measured = {}
        for sample in space.grid_samples():
            validate = evaluator(train_dataloaders=None)
            model = RawFormatModelSpace(space, validate).freeze(sample)
            SequentialExecutionEngine().submit_models(model)
            measured[sample["branch"]] = negative(model.metric)

    assert measured["line"] > measured["zero"]
    assert all(torch.equal(space.state_dict()[name], value) for name, value in weights.items())
    assert RegularizedEvolution().is_one_shot is False


@pytest.mark.parametrize("name", ["path", "sampler"])
def test_there_is_no_path_before_the_conversion(name: str) -> None:
    with pytest.raises(RuntimeError, match="call mutate_model first"):
        getattr(RandomOneShot(), name)
