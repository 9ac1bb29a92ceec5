import itertools

import pytest

from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    ExpressionConstraint,
    LabeledMutable,
    MutableDict,
    Numerical,
)
from nni.nas.strategy.policy.game import SampleGame


def game_of(*leaves: LabeledMutable) -> SampleGame:
    return SampleGame({str(leaf.label): leaf for leaf in leaves})


@pytest.mark.parametrize(
    "leaf",
    [
        Categorical(["a", (1, 2), int], label="x"),
        CategoricalMultiple([1, 2, 3], n_chosen=None, label="x"),
        CategoricalMultiple([1, 2, 3], n_chosen=1, label="x"),
    ],
)
def test_every_value_is_chosen_by_one_sequence_of_actions(leaf: LabeledMutable) -> None:
    game = game_of(leaf)

    chosen = [game.sample(a) for a in itertools.product(*map(range, game.action_counts))]

    expected = list(leaf.grid_samples())
    assert len(chosen) == len(expected)
    assert all(sample in chosen for sample in expected)


def test_dimensions_have_their_steps_in_order() -> None:
    game = game_of(
        Categorical([10, 20, 30], label="a"),
        CategoricalMultiple(["x", "y"], n_chosen=None, label="b"),
        CategoricalMultiple([5, 6, 7, 8], n_chosen=1, label="c"),
    )

    assert game.action_counts == (3, 2, 2, 4)
    assert game.sample([2, 1, 0, 3]) == {"a": 30, "b": ["y"], "c": [8]}


def test_constraints_have_no_step() -> None:
    a, b = Categorical([1, 2], label="a"), Categorical([3, 4], label="b")
    space = MutableDict({"a": a, "b": b, "rule": ExpressionConstraint(a + b == 5, label="r")})

    assert SampleGame(space.simplify()).action_counts == (2, 2)


@pytest.mark.claim("nas", 46)
@pytest.mark.parametrize(
    "leaf",
    [CategoricalMultiple([0, 1, 2, 3], n_chosen=2, label="x"), Numerical(0, 1, label="x")],
)
def test_other_dimensions_are_refused(leaf: LabeledMutable) -> None:
    with pytest.raises(ValueError, match=r"'x' is .*; use RegularizedEvolution"):
        game_of(leaf)
