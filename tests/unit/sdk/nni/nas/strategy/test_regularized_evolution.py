import pytest

from nni.mutable import Sample
from nni.nas.strategy import Random, RegularizedEvolution
from nni.nas.strategy.base import Strategy
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import bits, digits


def ones(sample: Sample) -> float:
    return float(sum(sample.values()))


@pytest.mark.claim("nas", 44)
def test_sample_size_is_at_most_the_population() -> None:
    with pytest.raises(ValueError, match="sample_size must be >= 1 and <= population_size, got 30"):
        RegularizedEvolution(sample_size=30, population_size=20)

    RegularizedEvolution(sample_size=20, population_size=20)


@pytest.mark.parametrize("probability", [-0.1, 1.1])
def test_mutation_probability_is_in_its_range(probability: float) -> None:
    with pytest.raises(ValueError, match=r"mutation_prob must be in \[0, 1\]"):
        RegularizedEvolution(mutation_prob=probability)


def best(strategy: Strategy) -> float:
    engine = SimulatedEngine(ones, 500)
    strategy(bits(20), engine)
    return float(strategy.list_models()[0].metric)


@pytest.mark.claim("nas", 45)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_evolution_beats_random_search_on_onemax(seed: int) -> None:
    assert best(RegularizedEvolution(seed=seed)) > best(Random(seed=seed))


def test_first_models_are_random() -> None:
    seen: list[list[Sample]] = []
    for strategy in (RegularizedEvolution(population_size=30, seed=3), Random(seed=3)):
        engine = SimulatedEngine(ones, 30)
        strategy(bits(20), engine)
        seen.append(engine.samples)

    assert seen[0] == seen[1]


def test_children_differ_little_from_a_member() -> None:
    engine = SimulatedEngine(ones, 60)
    strategy = RegularizedEvolution(population_size=10, sample_size=10, seed=0)

    strategy(bits(40), engine)

    samples = engine.samples
    for index in range(10, 60):
        distances = [
            sum(samples[index][label] != other[label] for label in other)
            for other in samples[max(0, index - 10) : index]
        ]
        # Each of 40 bits flips with probability 0.025, so 1 on average; more than 8 of them with
        # a probability below 1e-5 a child.
        assert min(distances) <= 8


def test_crossover_takes_each_dimension_from_either_parent() -> None:
    engine = SimulatedEngine(ones, 3)
    strategy = RegularizedEvolution(
        population_size=2, sample_size=1, mutation_prob=0.0, crossover=True, seed=1
    )

    strategy(bits(30), engine)

    first, second, child = engine.samples
    origins = {
        (child[label] == first[label], child[label] == second[label])
        for label in child
        if first[label] != second[label]
    }
    assert origins == {(True, False), (False, True)}


def test_oldest_members_leave_however_good_they_are() -> None:
    strategy = RegularizedEvolution(population_size=5, sample_size=5, seed=0)
    engine = SimulatedEngine(ones, 40)

    strategy(bits(12), engine)

    metrics = [metric for _, metric in strategy.state_dict()["population"]]
    assert metrics == [ones(sample) for sample in engine.samples[-5:]]


def test_models_without_a_metric_do_not_join_the_population() -> None:
    strategy = RegularizedEvolution(population_size=5, sample_size=5, seed=0)

    strategy(bits(8), SimulatedEngine(lambda s: ones(s) if s["0"] else float("nan"), 20))

    assert all(values["0"] == 1 for values, _ in strategy.state_dict()["population"])


def test_running_models_may_be_drawn_again_after_a_resume() -> None:
    first = RegularizedEvolution(population_size=3, sample_size=1, seed=0)
    engine = SimulatedEngine(lambda sample: float(sample["a"]), 3, concurrency=3)
    first(digits(3), engine)
    assert not [model for model in engine.submitted if model.status.completed()]

    second, again = (
        RegularizedEvolution(population_size=3, sample_size=1, mutation_prob=1.0, seed=1),
        SimulatedEngine(lambda sample: float(sample["a"])),
    )
    second.initialize(digits(3), again)
    second.load_state_dict(first.state_dict())
    second.run()

    assert sorted(sample["a"] for sample in again.samples) == [0, 1, 2]


@pytest.mark.parametrize("name", ["cycles", "on_failure", "optimize_mode"])
def test_keywords_of_nni_2_are_ignored_with_a_warning(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} of RegularizedEvolution has no effect"):
        RegularizedEvolution(**{name: None})  # type: ignore[arg-type]  # an old keyword
