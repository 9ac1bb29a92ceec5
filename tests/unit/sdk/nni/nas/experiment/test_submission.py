"""Searches that are submitted to the NAS service."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nni.experiment.errors import ConfigError
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.experiment.submission import load_search, submit_search
from nni.nas.strategy import Random
from tests.support.explored_space import Widths, measure

MODULE = """\
from tests.unit.sdk.nni.nas.experiment.test_submission import search

made = search()
number = 3


def build():
    return search()


def broken():
    return {}["data"]


def needy(data):
    return search()
"""


def search(config: NasExperimentConfig | None = None) -> NasExperiment:
    return NasExperiment(Widths(), FunctionalEvaluator(measure), Random(seed=0), config)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module of a user in the working directory."""
    name = f"searches_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


def test_search_and_function_that_builds_one_are_found(module: str) -> None:
    assert isinstance(load_search(f"{module}:made"), NasExperiment)
    assert isinstance(load_search(f"{module}:build"), NasExperiment)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", "must be a module, a colon and a name"),
        (":none", "does not exist"),
        (":number", "a function that returns one, got an object of type int"),
        (":broken", r"raised KeyError: 'data' at .*/searches_\w+\.py:12"),
        (":needy", r"raised TypeError: needy\(\) missing 1 required positional argument"),
    ],
)
def test_other_names_are_refused(module: str, name: str, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        load_search(f"{module}{name}")


def test_module_that_is_not_there_is_refused(module: str) -> None:
    del module
    with pytest.raises(ConfigError, match="cannot be imported"):
        load_search("no_such_module:build")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("import no_such_package", "No module named 'no_such_package'; install it, or change the"),
        ("def build(", r"cannot be imported: SyntaxError: .* line 1"),
        ("\n1 / 0", r"cannot be imported: ZeroDivisionError: division by zero at .*\.py:2"),
    ],
)
def test_module_that_cannot_be_imported_is_refused(
    module: str, tmp_path: Path, text: str, rule: str
) -> None:
    (tmp_path / f"{module}.py").write_text(text)

    with pytest.raises(ConfigError, match=rule):
        load_search(f"{module}:build")


def test_search_in_this_process_only_is_refused_before_anything_is_started() -> None:
    with pytest.raises(ValueError, match="model_format must not be 'raw'"):
        submit_search(search(NasExperimentConfig("sequential", "raw")))
