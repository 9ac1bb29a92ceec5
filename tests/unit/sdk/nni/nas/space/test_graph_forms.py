"""Forms of mutable modules in graphs."""

from typing import Any

import pytest
from torch import nn

import nni
from nni.nas.nn.pytorch import Cell, InputChoice, LayerChoice, MutableLinear, Repeat
from nni.nas.space.graph_forms import (
    AlternativesForm,
    RepetitionForm,
    SelectionForm,
    UnitForm,
)
from tests.unit.sdk.nni.nas.graph_models import ChoiceInUnit, UsedValue


@pytest.mark.parametrize(
    ("module", "form"),
    [
        (LayerChoice([nn.ReLU()], label="a"), AlternativesForm),
        (InputChoice(2, label="b"), SelectionForm),
        (Repeat(nn.ReLU(), (1, 2), label="c"), RepetitionForm),
        (MutableLinear(1, nni.choice("d", [1, 2])), UnitForm),
    ],
)
def test_primitive_has_its_form(module: Any, form: type) -> None:
    assert type(module.graph_form()) is form


def test_form_of_a_wrapped_class_names_that_class() -> None:
    assert MutableLinear(1, 2).graph_form().symbol is nn.Linear


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Cell([nn.ReLU()], 1, label="e"), "frozen in a way that the graph format"),
        (UsedValue, "its constructor may have used their values"),
        (ChoiceInUnit, "'layer' inside is mutable"),
    ],
)
def test_module_that_a_graph_does_not_see_through_is_refused(make: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        make().graph_form()
