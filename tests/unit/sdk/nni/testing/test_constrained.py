from random import Random

from nni.hpo.space.parser import parse_space
from nni.testing.constrained import constrained_space

SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "y": {"_type": "uniform", "_value": [0, 1]},
    "kind": {"_type": "choice", "_value": ["a", "b", "c"]},
}


def test_constraints_leave_a_part_of_the_space() -> None:
    constrained = parse_space(constrained_space(SPACE))

    allowed = [constrained.allows(parse_space(SPACE).draw(Random(seed))) for seed in range(400)]

    # Two halves and two of three options: 1/6 of the draws, with a standard deviation of 2 %.
    assert 0.05 < sum(allowed) / len(allowed) < 0.4


def test_space_without_parameters_is_returned_as_it_is() -> None:
    assert constrained_space({}) == {}


def test_choice_with_one_option_is_not_forbidden() -> None:
    space = {"kind": {"_type": "choice", "_value": ["a"]}}

    assert constrained_space(space) == space
