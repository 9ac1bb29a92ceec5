"""Overrides of a configuration by command-line options."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from nni.hpo import Choice, RandInt, Uniform
from nni.hpo.space._command_line import with_arguments
from nni.hpo.space._type_reader import read_structure


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


def test_untuned_field_has_an_option_of_its_type() -> None:
    assert with_arguments(STRUCTURE, PARAMETERS, ["--epochs", "2"])["epochs"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model/Tree/depth", "7"], "is only for --model Tree"),
        (["--model", "Forest"], "must be one of Svm, Tree; got Forest"),
        (["--rate", "1"], "unrecognized arguments"),
        (["--epochs", "many"], "invalid int value"),
    ],
)
def test_wrong_option_ends_the_program_with_a_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        with_arguments(STRUCTURE, PARAMETERS, arguments)

    assert message in capsys.readouterr().err
