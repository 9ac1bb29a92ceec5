"""Choices among values in the style of NNI 2.x."""

import pytest

import nni
from nni.mutable import Categorical
from nni.nas.nn.pytorch import MutableLinear, ValueChoice


@pytest.fixture
def choice() -> ValueChoice:
    with pytest.warns(DeprecationWarning, match=r"write nni.choice\(label, candidates\)"):
        return ValueChoice([2, 4], prior=[0.25, 0.75], label="width")


def test_value_choice_is_a_categorical(choice: ValueChoice) -> None:
    assert isinstance(choice, Categorical)
    assert (choice.candidates, choice.weights, choice.label) == ([2, 4], [0.25, 0.75], "width")


def test_value_choice_is_an_argument(choice: ValueChoice) -> None:
    assert MutableLinear(choice, 1).freeze({"width": 4}).in_features == 4


def test_record_names_the_class_that_is_not_deprecated(choice: ValueChoice) -> None:
    again = choice.trace_symbol(**choice.trace_kwargs)

    assert type(again) is Categorical
    assert again.weights == [0.25, 0.75]


def test_dumped_choice_is_loaded_without_a_warning(choice: ValueChoice) -> None:
    loaded = nni.load(nni.dump(choice))

    assert loaded.equals(Categorical([2, 4], weights=[0.25, 0.75], label="width"))
