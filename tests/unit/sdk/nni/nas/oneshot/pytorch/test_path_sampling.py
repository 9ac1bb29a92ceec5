"""Draws of architectures for a supernet of one path."""

from collections import Counter

import pytest
import torch

from nni.mutable import Categorical, ExpressionConstraint, MutableList
from nni.nas.oneshot.pytorch.path_sampling import UniformSampler

A = Categorical([1, 2, 3], label="a")
B = Categorical([1, 2], label="b")


def test_draws_are_uniform() -> None:
    torch.manual_seed(0)
    sampler = UniformSampler(MutableList([A, B]))

    counts = Counter(tuple(sampler.draw().values()) for _ in range(600))

    # Each of six samples: mean 100, standard deviation sqrt(600 * 1/6 * 5/6) = 9.1; four of them.
    assert len(counts) == 6
    assert all(abs(count - 100) < 37 for count in counts.values())


def test_draws_repeat_with_the_seed_of_torch() -> None:
    drawn = []
    for _ in range(2):
        torch.manual_seed(3)
        sampler = UniformSampler(MutableList([A, B]))
        drawn.append([sampler.draw() for _ in range(10)])

    assert drawn[0] == drawn[1]


def test_draws_continue_from_a_restored_state() -> None:
    first, second = (UniformSampler(MutableList([A, B])) for _ in range(2))
    first.draw()

    second.state = first.state

    assert [first.draw() for _ in range(10)] == [second.draw() for _ in range(10)]


def test_draws_satisfy_constraints_and_condition() -> None:
    rule = ExpressionConstraint(A + B == 4, label="sum")
    sampler = UniformSampler(MutableList([A, B, rule]), lambda sample: sample["a"] > 2)

    assert all(sampler.draw() == {"a": 3, "b": 1} for _ in range(5))


def test_condition_that_nothing_satisfies_ends_after_all_attempts() -> None:
    seen = []
    sampler = UniformSampler(MutableList([A]), lambda sample: bool(seen.append(sample)))  # type: ignore[func-returns-value]  # counts and refuses

    with pytest.raises(RuntimeError, match="none of 100 random architectures"):
        sampler.draw()
    assert len(seen) == 100
