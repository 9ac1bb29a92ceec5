"""Checks of class arguments."""

import subprocess
import sys

import pytest

from nni.hpo.registry.built_in import BUILT_IN
from nni.hpo.registry.validation import ClassArgsValidator, check_count

MAKE = ClassArgsValidator()


def test_base_accepts_everything() -> None:
    given = {"anything": object()}

    MAKE.validate_class_args(**given)

    assert set(given) == {"anything"}


@pytest.mark.parametrize("value", ["maximize", "minimize"])
def test_choices_accepts_what_it_lists(value: str) -> None:
    assert MAKE.choices("optimize_mode", "maximize", "minimize")(value)


@pytest.mark.parametrize("value", ["max", None, 1, ["maximize"]])
def test_choices_names_the_key_of_what_it_refuses(value: object) -> None:
    with pytest.raises(ValueError, match="optimize_mode must be one of 'maximize', 'minimize'"):
        MAKE.choices("optimize_mode", "maximize", "minimize")(value)


def test_choices_keeps_booleans_and_numbers_apart() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        MAKE.choices("flag", True, False)(1)


@pytest.mark.parametrize("value", [0, 9999])
def test_range_includes_both_ends(value: int) -> None:
    assert MAKE.range("start_step", int, 0, 9999)(value)


@pytest.mark.parametrize("value", [-1, 10000, 1.5, "1", True, None])
def test_range_names_the_key_of_what_it_refuses(value: object) -> None:
    with pytest.raises(ValueError, match="start_step must"):
        MAKE.range("start_step", int, 0, 9999)(value)


def test_range_of_floats_takes_ints() -> None:
    assert MAKE.range("threshold", float, 0, 1)(1)


@pytest.mark.parametrize("value", [True, "0.5", None, 1.5, -0.5])
def test_range_of_floats_names_the_key_of_what_it_refuses(value: object) -> None:
    assert MAKE.range("threshold", float, 0, 1)(0.5) is True
    with pytest.raises(ValueError, match="threshold must"):
        MAKE.range("threshold", float, 0, 1)(value)


@pytest.mark.parametrize("value", [1, None, ["a"]])
def test_path_is_a_text(value: object) -> None:
    assert MAKE.path("file")("a") is True
    with pytest.raises(ValueError, match="file must be a path"):
        MAKE.path("file")(value)


def test_path_refuses_empty_text() -> None:
    assert MAKE.path("file")("a/b")
    with pytest.raises(ValueError, match="file must be a path"):
        MAKE.path("file")("")


@pytest.mark.claim("hpo", 47)
def test_medianstop_refuses_a_negative_start_step() -> None:
    (entry,) = [entry for entry in BUILT_IN if entry.name == "Medianstop"]
    assert isinstance(entry.validator, ClassArgsValidator)

    entry.validator.validate_class_args(optimize_mode="minimize", start_step=5)
    with pytest.raises(ValueError, match=r"start_step must be an int in \[0, 9999\], got -1"):
        entry.validator.validate_class_args(start_step=-1)


@pytest.mark.parametrize("value", [0, 1.0, True, "3", None])
def test_check_count_refuses_what_is_no_count(value: object) -> None:
    with pytest.raises(ValueError, match="trials must be an int >= 1"):
        check_count("trials", value, least=1)


@pytest.mark.parametrize("least", [0, 1, 5])
def test_check_count_accepts_the_least_count(least: int) -> None:
    check_count("trials", least, least=least)
    with pytest.raises(ValueError, match=f"trials must be an int >= {least}, got {least - 1}"):
        check_count("trials", least - 1, least=least)


def test_validator_is_importable_without_numpy() -> None:
    program = (
        "import sys, nni.hpo.registry.validation\n"
        "assert not {'numpy', 'scipy', 'grpc', 'pydantic'} & set(sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == 0
