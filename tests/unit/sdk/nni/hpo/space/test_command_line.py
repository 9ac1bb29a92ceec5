"""Overrides of a configuration by command-line options."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

import pytest

from nni.hpo import Choice, RandInt, Uniform
from nni.hpo.space._command_line import with_arguments
from nni.hpo.space._type_reader import read_structure


class Order(Enum):
    UP = "up"
    DOWN = "1"


@dataclass
class Svm:
    c: Annotated[float, Uniform(0, 1)] = 0.5


@dataclass
class Tree:
    depth: Annotated[int, RandInt(1, 9)] = 3


@dataclass
class Training:
    model: Svm | Tree
    fast: Annotated[bool, Choice()] = False
    epochs: int = 10
    rate: float = 0.5
    name: str = "run"
    quick: bool = False
    order: Order = Order.UP
    sizes: list[int] = field(default_factory=list)
    limit: int | None = None


STRUCTURE = read_structure(Training)
PARAMETERS = {"model": {"_name": "Svm", "c": 0.1}, "fast": False}


def test_options_override_parameters_and_leave_the_argument_unchanged() -> None:
    merged = with_arguments(STRUCTURE, PARAMETERS, ["--model/Svm/c", "0.7", "--fast", "true"])

    assert merged == {"model": {"_name": "Svm", "c": 0.7}, "fast": True}
    assert PARAMETERS == {"model": {"_name": "Svm", "c": 0.1}, "fast": False}


def test_option_of_an_inner_field_applies_to_the_branch_that_another_option_selects() -> None:
    arguments = ["--model/Tree/depth", "7", "--model", "Tree"]

    merged = with_arguments(STRUCTURE, PARAMETERS, arguments)

    assert merged["model"] == {"_name": "Tree", "depth": 7}


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("epochs", "2", 2),
        ("rate", "2", 2.0),
        ("name", "2", "2"),
        ("quick", "true", True),
        ("order", "1", "1"),
        ("sizes", "[1, 2]", [1, 2]),
        ("limit", "null", None),
        ("limit", "5", 5),
    ],
)
def test_untuned_field_has_an_option_of_its_type(option: str, text: str, value: object) -> None:
    found = with_arguments(STRUCTURE, PARAMETERS, [f"--{option}", text])[option]

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model/Tree/depth", "7"], "is only for --model Tree"),
        (["--model", "Forest"], "must be one of Svm, Tree; got Forest"),
        (["--depth", "1"], "unrecognized arguments"),
        (["--epochs", "many"], "invalid int value"),
    ],
)
def test_wrong_option_ends_the_program_with_a_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        with_arguments(STRUCTURE, PARAMETERS, arguments)

    assert message in capsys.readouterr().err


def test_option_is_not_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        with_arguments(STRUCTURE, PARAMETERS, ["--epo", "3"])

    assert "unrecognized arguments: --epo" in capsys.readouterr().err
