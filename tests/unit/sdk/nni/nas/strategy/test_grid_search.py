import itertools

import pytest

from nni.mutable import Categorical, CategoricalMultiple, Numerical
from nni.nas.space.raw import RawFormatModelSpace
from nni.nas.strategy import GridSearch
from nni.nas.strategy.grid_search import is_infinite
from nni.testing.strategies import SimulatedEngine, TableSpace
from tests.support.architecture_search import bits, digits


def numbers(quantize: float | None = None) -> RawFormatModelSpace:
    return RawFormatModelSpace(TableSpace(Numerical(0, 1, quantize=quantize, label="rate")))


@pytest.mark.claim("nas", 42)
def test_unshuffled_order_is_that_of_the_grid() -> None:
    engine = SimulatedEngine(lambda _sample: 1.0)
    space = bits(4)

    GridSearch(shuffle=False)(space, engine)

    assert engine.samples == [model.sample for model in space.grid()]


@pytest.mark.claim("nas", 42)
def test_shuffled_models_are_those_of_the_grid_in_another_order() -> None:
    engine = SimulatedEngine(lambda _sample: 1.0)
    space = digits(250)

    GridSearch(seed=0)(space, engine)

    values = [sample["a"] for sample in engine.samples]
    assert sorted(values) == list(range(250)) != values
    # Shuffling works inside buffers of 100 models.
    assert [sorted(part) for part in (values[:100], values[100:200], values[200:])] == [
        list(range(100)),
        list(range(100, 200)),
        list(range(200, 250)),
    ]


@pytest.mark.claim("nas", 43)
def test_finer_grids_of_a_number_bring_new_values() -> None:
    engine = SimulatedEngine(lambda _sample: 1.0, 7)

    GridSearch(shuffle=False)(numbers(), engine)

    values = [sample["rate"] for sample in engine.samples]
    assert values[:3] == [0.5, 0.25, 0.75]
    assert len(set(values)) == 7


def test_search_ends_after_three_passes_without_a_new_sample() -> None:
    engine = SimulatedEngine(lambda _sample: 1.0)

    GridSearch()(numbers(quantize=0.25), engine)

    # 0 and 1 need the quantiles below 1/8 and above 7/8, which pass 4 has.
    assert sorted(sample["rate"] for sample in engine.samples) == [0, 0.25, 0.5, 0.75, 1]


def test_without_dedup_finer_grids_repeat_the_coarse_ones() -> None:
    engine = SimulatedEngine(lambda _sample: 1.0, 4)

    GridSearch(shuffle=False, dedup=False)(numbers(), engine)

    assert [sample["rate"] for sample in engine.samples] == [0.5, 0.25, 0.5, 0.75]


def test_spaces_with_numbers_are_infinite() -> None:
    assert is_infinite(numbers())
    assert not is_infinite(RawFormatModelSpace(TableSpace(Categorical([1, 2], label="a"))))


def test_resumed_search_submits_running_models_again_and_no_other_twice() -> None:
    first = SimulatedEngine(lambda _sample: 1.0, 10, concurrency=3)
    strategy = GridSearch(seed=1)
    strategy(bits(5), first)
    ended = [model.sample for model in first.submitted if model.status.completed()]
    state = strategy.state_dict()

    second = SimulatedEngine(lambda _sample: 1.0)
    resumed = GridSearch(seed=2)
    resumed.initialize(bits(5), second)
    resumed.load_state_dict(state)
    resumed.run()

    assert len(ended) == 7
    samples = [tuple(sample.values()) for sample in [*ended, *second.samples] if sample]
    assert sorted(samples) == sorted(itertools.product([0, 1], repeat=5))


def test_a_space_with_more_subsets_than_can_be_counted_is_searched() -> None:
    space = TableSpace(CategoricalMultiple(list(range(60)), label="inputs"))
    engine = SimulatedEngine(lambda _sample: 1.0, 3)

    GridSearch(shuffle=False)(RawFormatModelSpace(space), engine)

    assert [sample["inputs"] for sample in engine.samples] == [[], [0], [1]]
