"""Descriptions of dataclasses and functions."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import pytest

from nni.hpo import Choice, QUniform, RandInt, Uniform
from nni.hpo.space._type_reader import (
    ChoiceContent,
    NumberContent,
    Structure,
    UntunedContent,
    is_type_of_space,
    read_structure,
)


class Kernel(Enum):
    RBF = "rbf"
    LINEAR = ("linear", 1)


@dataclass
class Svm:
    c: Annotated[float, Uniform(0, 1)]


@dataclass
class Tree:
    pass


@dataclass
class Training:
    model: Svm | Tree
    kernel: Annotated[Kernel, Choice()]
    inner: Svm
    width: Annotated[int, QUniform(8, 64, 8)] = 8
    epochs: int = 10


def contents() -> dict[str, object]:
    return {field.name: field.content for field in read_structure(Training).fields}


def test_union_of_structures_is_a_choice_with_branches() -> None:
    content = contents()["model"]

    assert isinstance(content, ChoiceContent)
    assert [(o.wire, o.branch is not None) for o in content.options] == [
        ("Svm", True),
        ("Tree", True),
    ]


def test_members_of_an_enum_are_options_by_value_or_else_by_name() -> None:
    content = contents()["kernel"]

    assert isinstance(content, ChoiceContent)
    assert [option.wire for option in content.options] == ["rbf", "LINEAR"]


def test_single_structure_is_nested_and_untuned_field_keeps_its_type() -> None:
    found = contents()

    assert isinstance(found["inner"], Structure)
    assert found["epochs"] == UntunedContent(int)


def test_quantised_range_on_an_int_converts_to_int() -> None:
    content = contents()["width"]

    assert isinstance(content, NumberContent)
    assert content.type is int


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        (Annotated[int, Uniform(0, 1)], "must be float"),
        (Annotated[str, RandInt(0, 1)], "must be int or float"),
        (Annotated[int, Choice()], "must list its options"),
        (Annotated[int, Choice("a")], "must have options of type int"),
        (Annotated[int, RandInt], r"must have RandInt\(...\) with its arguments"),
        (Annotated[int, RandInt(0, 1), Choice(1)], "must be tuned in one way"),
        (int, "must have a default"),
    ],
)
def test_wrong_field_is_refused_with_its_name(hint: object, message: str) -> None:
    def train(x) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001

    train.__annotations__["x"] = hint

    with pytest.raises(TypeError, match=rf"train\.x {message}"):
        read_structure(train)


def test_literal_names_its_own_values() -> None:
    def train(mode: Annotated[Literal["a", "b"], Choice()]) -> None: ...

    (field,) = read_structure(train).fields

    assert isinstance(field.content, ChoiceContent)
    assert [option.value for option in field.content.options] == ["a", "b"]


def test_json_space_is_no_type() -> None:
    assert is_type_of_space(Training)
    assert not is_type_of_space({"x": {"_type": "choice", "_value": [1]}})


def test_choice_without_options_has_those_of_every_member_of_a_union() -> None:
    def train(part: Annotated[Svm | Literal[3, "x"] | bool | Kernel | None, Choice()]) -> None: ...

    (field,) = read_structure(train).fields

    assert isinstance(field.content, ChoiceContent)
    values = [option.value for option in field.content.options]
    assert values == [Svm, 3, "x", False, True, Kernel.RBF, Kernel.LINEAR, None]
    wires = [option.wire for option in field.content.options]
    assert wires == ["Svm", 3, "x", False, True, "rbf", "LINEAR", None]
    assert [option.branch is not None for option in field.content.options] == [True] + [False] * 7


@pytest.mark.parametrize(
    ("prior", "wire"),
    [
        ({"value": Kernel.LINEAR}, {"value": "LINEAR"}),
        ({"value": "rbf", "confidence": "low"}, {"value": "rbf", "confidence": "low"}),
        ({"value": "unknown"}, {"value": "unknown"}),
        ({"weights": [1, 2]}, {"weights": [1, 2]}),
        (None, None),
    ],
)
def test_user_prior_names_an_option_by_its_json_value(prior: Any, wire: Any) -> None:
    def train(kernel) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001

    train.__annotations__["kernel"] = Annotated[Kernel, Choice(prior=prior)]

    (field,) = read_structure(train).fields

    assert isinstance(field.content, ChoiceContent)
    assert field.content.prior == wire


@pytest.mark.parametrize("source", [3, "text", object(), Svm(0.5), int, Kernel])
def test_what_is_no_class_or_function_of_fields_is_refused(source: object) -> None:
    with pytest.raises(TypeError, match="must be a dataclass, a pydantic model or a function"):
        read_structure(source)


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (Annotated[float, Uniform(0, 1)], float),
        (Annotated[int | float, Uniform(0, 1)], float),
        (Annotated[float | None, QUniform(8, 64, 8)], float),
        (Annotated[int, RandInt(0, 9)], int),
        (Annotated[int | str, RandInt(0, 9)], int),
        (Annotated[Any, Uniform(0, 1)], None),
    ],
)
def test_a_number_is_converted_to_the_type_of_its_field(hint: object, kind: type | None) -> None:
    def train(x) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001

    train.__annotations__["x"] = hint

    (field,) = read_structure(train).fields

    assert isinstance(field.content, NumberContent)
    assert field.content.type is kind


@pytest.mark.parametrize(
    ("base", "options", "fits"),
    [
        (int, (1, 2), True),
        (int, (1, True), False),
        (int, (1, 2.5), False),
        (float, (1, 2.5), True),
        (float, (1.0, False), False),
        (bool, (True, False), True),
        (bool, (1, 2), False),
        (str, ("a", "b"), True),
        (str, ("a", None), False),
        (list, ([1, 2], (3, None)), True),
        (object, (1, "a", None, [True]), True),
        (object, (1, {"a": 1}), False),
    ],
)
def test_options_have_the_type_of_their_field(
    base: type, options: tuple[object, ...], fits: bool
) -> None:
    def train(x) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001

    train.__annotations__["x"] = Annotated[base, Choice(*options)]

    if not fits:
        with pytest.raises(TypeError, match=r"train\.x must have options"):
            read_structure(train)
        return
    (field,) = read_structure(train).fields
    assert isinstance(field.content, ChoiceContent)
    assert [option.value for option in field.content.options] == list(options)
