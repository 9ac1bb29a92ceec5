from random import Random

import pytest

from nni.hpo.advisors._proposals import FlatProposals, dimension_of

SPACE = {
    "x": {"_type": "uniform", "_value": [0, 2]},
    "kind": {"_type": "choice", "_value": ["a", "b", "c"]},
    "_constraints": ["x <= 1"],
}


def test_dimension_counts_numbers_and_choices() -> None:
    assert dimension_of(FlatProposals(SPACE)) == 2


def test_configuration_survives_its_row() -> None:
    space = FlatProposals(SPACE)
    configuration = {"x": 0.5, "kind": "b"}

    assert space.configuration(space.row(configuration)) == configuration


def test_row_against_a_constraint_has_no_configuration() -> None:
    space = FlatProposals(SPACE)
    free = FlatProposals({name: SPACE[name] for name in ("x", "kind")})

    assert space.configuration(free.row({"x": 1.5, "kind": "a"})) is None


def test_draws_keep_the_constraints_and_repeat() -> None:
    space = FlatProposals(SPACE)

    draws = [space.draw(Random(seed)) for seed in range(20)]

    assert all(draw["x"] <= 1 for draw in draws)
    assert draws[7] == space.draw(Random(7))


def test_configuration_outside_the_space_is_refused() -> None:
    with pytest.raises(ValueError, match="kind"):
        FlatProposals(SPACE).row({"x": 0.5, "kind": "d"})


def test_prior_has_the_counts_of_the_choices() -> None:
    frame = FlatProposals(SPACE).frame

    assert frame.bounded.tolist() == [True]
    assert frame.counts.tolist() == [3]
