from __future__ import annotations

import subprocess
import sys

import pytest

import nni
from tests.support.converted_code import run_converted

READ = b"import nni.annotation.runtime as r; r.fetch(); "


def test_configuration_is_fetched_once_however_many_modules_ask() -> None:
    # A second answer would be None: a trial gets its configuration once.
    names = run_converted(READ + b"r.fetch(); x = r.value('x')", {"x": 1})

    assert names["x"] == 1


def test_configuration_that_the_script_fetched_by_itself_is_used() -> None:
    asked = b"import nni; nni.get_next_parameter(); "

    names = run_converted(asked + READ + b"x = r.value('x')", {"x": 1})

    assert names["x"] == 1


@pytest.mark.parametrize("parameters", [{}, {"y": 1}, [1], None])
def test_missing_value_says_what_the_configuration_is(parameters: object) -> None:
    with pytest.raises(LookupError, match=r"'x' must have a value.*run the original code"):
        run_converted(READ + b"r.value('x')", parameters)


@pytest.mark.parametrize("value", [1, "f(2)", None, ["f(1)"]])
def test_other_values_are_not_the_option(value: object) -> None:
    assert not run_converted(READ + b"y = r.is_chosen('x', 'f(1)')", {"x": value})["y"]


def test_value_that_is_no_option_is_refused() -> None:
    with pytest.raises(LookupError, match=r"options in its annotation, got 'h\(1\)'"):
        run_converted(READ + b"r.no_such_option('x')", {"x": "h(1)"})


def test_importing_the_runtime_fetches_nothing_and_loads_little() -> None:
    check = (
        "import sys, nni.annotation.runtime as r\n"
        "heavy = {'ast', 'typing', 'dataclasses', 'json', 'threading', 'nni.hpo'}\n"
        "print(sorted(heavy & set(sys.modules)), r._fetched)"
    )

    done = subprocess.run(
        [sys.executable, "-S", "-c", check],
        env={"PYTHONPATH": str(nni.__path__[0]).removesuffix("/nni")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "[] {}\n"
