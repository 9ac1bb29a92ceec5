"""Values among which a search decides at one label."""

import pytest

from nni.mutable import Categorical, CategoricalMultiple, Numerical
from nni.nas.oneshot.pytorch.alternatives import alternatives, combinations


def test_candidates_of_a_multiple_choice_are_alternatives() -> None:
    assert alternatives(CategoricalMultiple([0, 1, 2], n_chosen=1, label="skip")) == [0, 1, 2]


def test_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"nni\.choice"):
        alternatives(Numerical(0, 1, label="rate"))


def test_last_label_changes_fastest() -> None:
    leaves = [Categorical([1, 2], label="a"), CategoricalMultiple([0, 1], n_chosen=1, label="b")]

    assert list(combinations(leaves)) == [
        {"a": 1, "b": [0]},
        {"a": 1, "b": [1]},
        {"a": 2, "b": [0]},
        {"a": 2, "b": [1]},
    ]


def test_too_many_combinations_are_refused_before_they_are_made() -> None:
    leaves = [Categorical(range(200), label=label) for label in ("a", "b")]

    with pytest.raises(ValueError, match="got 40000"):
        next(combinations(leaves))
