from random import Random
from statistics import NormalDist

import pytest

from nni.hpo.space.parser import parse_space
from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    ExpressionConstraint,
    LabeledMutable,
    MutableDict,
    Numerical,
    Sample,
)
from nni.nas.strategy.hpo_space import HpoSpace


class Normal:
    """Normal distribution with the methods of one of scipy."""

    def cdf(self, x: float, /) -> float:
        return NormalDist().cdf(x)

    def ppf(self, q: float, /) -> float:
        return NormalDist().inv_cdf(q)


LEAVES = [
    Categorical([16, 32], label="plain"),
    Categorical([int, (1, 2), True], label="objects"),
    CategoricalMultiple(["a", "b", "c"], n_chosen=None, label="subset"),
    CategoricalMultiple(["a", "b", "c", "d"], n_chosen=2, label="pair"),
    CategoricalMultiple(["a", "b", "c", "d"], n_chosen=1, label="one"),
    Numerical(0, 1, label="uniform"),
    Numerical(0, 1, quantize=0.1, label="quniform"),
    Numerical(0.01, 1, log_distributed=True, label="loguniform"),
    Numerical(1, 9, quantize=2, log_distributed=True, label="qloguniform"),
    Numerical(mu=0, sigma=2, label="normal"),
    Numerical(mu=0, sigma=2, quantize=0.5, label="qnormal"),
    Numerical(mu=0, sigma=2, log_distributed=True, label="lognormal"),
    Numerical(0, 1, mu=0, sigma=2, label="truncated"),
    Numerical(distribution=Normal(), label="distribution"),
]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: str(leaf.label))
def test_every_configuration_is_a_sample(leaf: LabeledMutable) -> None:
    space = HpoSpace({leaf.label: leaf})
    parsed, rng = parse_space(space.search_space), Random(0)

    for _ in range(50):
        configuration = parsed.draw(rng)
        assert isinstance(configuration, dict)
        leaf.validate(space.sample(configuration))


@pytest.mark.parametrize("leaf", LEAVES[:5], ids=lambda leaf: str(leaf.label))
def test_every_value_of_a_choice_can_be_proposed(leaf: LabeledMutable) -> None:
    space = HpoSpace({leaf.label: leaf})
    parsed, rng = parse_space(space.search_space), Random(0)

    # The rarest of at most 8 values has a probability of 1/8; (7/8)^300 < 1e-17.
    drawn = [space.sample(dict(parsed.draw(rng))) for _ in range(300)]

    assert all(sample in drawn for sample in leaf.grid_samples())


def test_types_of_distributions_are_those_of_tuners() -> None:
    for leaf in LEAVES[5:12]:
        label = str(leaf.label)
        assert HpoSpace({label: leaf}).search_space[label]["_type"] == label


def test_constraints_have_no_parameter() -> None:
    a, b = Categorical([1, 2], label="a"), Categorical([3, 4], label="b")
    constrained = MutableDict({"a": a, "b": b, "rule": ExpressionConstraint(a + b == 5, label="r")})

    space = HpoSpace(constrained.simplify())

    assert list(space.search_space) == ["a", "b"]
    assert space.sample({"a": 2, "b": 3}) == {"a": 2, "b": 3}


class Odd(LabeledMutable):
    """Leaf of an own kind."""

    def check_value(self, value: object) -> str | None:
        return None

    def default_value(self) -> int:
        return 1

    def random_value(self, random_state: object) -> int:
        return 1

    def grid_values(self, granularity: int) -> "list[int]":  # type: ignore[override]  # any iterable
        return [1]


def test_leaves_of_other_kinds_are_refused() -> None:
    sample: Sample = Odd("odd").default_sample()

    with pytest.raises(TypeError, match="'odd' is a Odd, which tuners of hyperparameters cannot"):
        HpoSpace({"odd": Odd("odd")})
    assert sample == {"odd": 1}
