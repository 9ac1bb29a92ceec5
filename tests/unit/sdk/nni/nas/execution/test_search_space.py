import json
import math

import pytest
from torch import nn

import nni
from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    ExpressionConstraint,
    LabeledMutable,
    MutableList,
    Numerical,
)
from nni.nas.execution.search_space import LABELS_LIMIT, VALUES_LIMIT, readable, search_space_of
from nni.nas.nn.pytorch import (
    InputChoice,
    LayerChoice,
    ModelSpace,
    MutableDropout,
    MutableLinear,
    Repeat,
)


class Net(ModelSpace):
    def __init__(self) -> None:
        super().__init__()
        width = nni.choice("width", [8, 16])
        self.first = MutableLinear(4, width)
        wide = nn.Sequential(
            MutableLinear(width, 3), MutableDropout(nni.choice("rate", [0.1, 0.5]))
        )
        self.layer = LayerChoice({"wide": wide, "none": nn.Identity()}, label="layer")
        self.skip = InputChoice(3, 2, label="skip")
        self.blocks = Repeat(
            lambda index: LayerChoice([nn.ReLU(), nn.Tanh()], label=f"act{index}"),
            (1, 2),
            label="depth",
        )


def test_each_label_has_its_kind_and_values() -> None:
    space = search_space_of(Net())

    assert {label: (entry["kind"], entry["_value"]) for label, entry in space.items()} == {
        "width": ("value", [8, 16]),
        "layer": ("layer", ["wide", "none"]),
        "rate": ("value", [0.1, 0.5]),
        "skip": ("inputs", [0, 1, 2]),
        "depth": ("depth", [1, 2]),
        "act0": ("layer", [0, 1]),
        "act1": ("layer", [0, 1]),
    }


def test_layers_have_a_text_for_each_candidate() -> None:
    space = search_space_of(Net())

    assert space["layer"]["candidates"] == [
        "Sequential(MutableLinear, MutableDropout)",
        "Identity()",
    ]
    assert space["act0"]["candidates"] == ["ReLU()", "Tanh()"]


def test_dimension_inside_a_candidate_names_the_choice() -> None:
    space = search_space_of(Net())

    assert space["rate"]["inside"] == {"label": "layer", "value": "wide"}
    assert "inside" not in space["width"]  # it is also used outside


def test_number_of_chosen_inputs_is_shown_unless_it_is_free() -> None:
    fixed = CategoricalMultiple("abc", n_chosen=2, label="fixed")
    free = CategoricalMultiple("abc", label="free")

    space = search_space_of(MutableList([fixed, free]))

    assert space["fixed"]["chosen"] == 2
    assert "chosen" not in space["free"]


@pytest.mark.parametrize(
    ("number", "kind", "values"),
    [
        (Numerical(0, 1, label="x"), "uniform", [0, 1]),
        (Numerical(0.1, 1, log_distributed=True, label="x"), "loguniform", [0.1, 1]),
        (Numerical(0, 8, quantize=2, label="x"), "quniform", [0, 8, 2]),
        (Numerical(mu=0, sigma=2, label="x"), "normal", [0, 2]),
    ],
)
def test_numbers_have_the_types_of_tuning(
    number: Numerical, kind: str, values: list[float]
) -> None:
    entry = search_space_of(number)["x"]

    assert (entry["_type"], entry["_value"], entry["kind"]) == (kind, values, "number")


def test_other_distributions_are_shown_as_text() -> None:
    entry = search_space_of(Numerical(-1, 1, mu=0, sigma=2, label="x"))["x"]

    assert entry["_type"] == "distribution"
    assert entry["_value"][0].startswith("Numerical(")


def test_constraints_have_no_entry() -> None:
    one, other = Categorical([1, 2], label="a"), Categorical([1, 2], label="b")

    space = search_space_of(MutableList([one, other, ExpressionConstraint(one < other, label="c")]))

    assert list(space) == ["a", "b"]


def test_large_spaces_are_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    long = Categorical(list(range(VALUES_LIMIT + 1)), label="long")
    many: dict[str, LabeledMutable] = {
        str(number): Categorical([1], label=str(number)) for number in range(LABELS_LIMIT + 5)
    }

    space = search_space_of(object(), many)

    assert search_space_of(long)["long"]["size"] == VALUES_LIMIT + 1
    assert len(search_space_of(long)["long"]["_value"]) == VALUES_LIMIT
    assert len(space) == LABELS_LIMIT
    assert f"shows {LABELS_LIMIT} of the {LABELS_LIMIT + 5} dimensions" in caplog.text


def test_values_are_json_of_a_limited_size() -> None:
    assert readable((1, (2.5, None))) == [1, [2.5, None]]
    assert readable(math.inf) == "inf"
    assert readable(int) == "<class 'int'>"
    assert readable("x" * 200) == "x" * 79 + "…"
    json.dumps(search_space_of(Net()), allow_nan=False)


def test_what_is_no_space_has_no_dimensions() -> None:
    assert search_space_of(object()) == {}
