"""Drafts of experiments, from the texts of scripts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nni.experiment.config import ExperimentConfig
from nni.experiment.quickstart import (
    CONFIG_FILE,
    SPACE_FILE,
    WRAPPER_FILE,
    files_of,
    outline_of,
)

SCRIPT = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-l", "--learning-rate", type=float, default=0.1)
parser.add_argument("--dropout", default=0.5)
parser.add_argument("--hidden_size", type=int, default=64)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
parser.add_argument("--shift", default=-0.5)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--data", required=True)
parser.add_argument("--fast", action="store_true")
parser.add_argument("--name", default="run")
parser.add_argument("input")
arguments = parser.parse_args()
accuracy = 1 - abs(arguments.learning_rate - 0.3)
"""
RESULT = "accuracy = 1 - abs(arguments.learning_rate - 0.3)"


def kinds(text: str) -> dict[str, tuple[str, tuple[object, ...]]]:
    return {one.name: (one.kind, one.values) for one in outline_of(text).suggestions}


def test_arguments_become_ranges_around_their_defaults() -> None:
    assert kinds(SCRIPT) == {
        "learning_rate": ("loguniform", (0.01, 1.0)),
        "dropout": ("uniform", (0.0, 0.99)),
        "hidden_size": ("choice", (32, 64, 128)),
        "layers": ("randint", (1, 5)),
        "optimizer": ("choice", ("sgd", "adam")),
        "shift": ("uniform", (-0.5, 1.0)),
    }


def test_other_arguments_are_named_with_the_reason() -> None:
    reasons = dict(outline_of(SCRIPT).left_out)

    assert set(reasons) == {"--epochs", "--data", "--fast", "--name"}
    assert "add it to trialCommand" in reasons["--data"]


@pytest.mark.parametrize(
    "default",
    ["1e999", "1" + 400 * "0", "float('nan')", "True", "None", "[1]", "size()", "10 ** 10 ** 10"],
)
def test_default_that_is_no_plain_number_is_left_out(default: str) -> None:
    assert kinds(f"parser.add_argument('--rate', default={default})") == {}


def test_doubtful_escape_in_a_script_is_no_warning() -> None:
    assert list(kinds(r"x = '\d'; parser.add_argument('--rate', default=0.5)")) == ["rate"]


def test_script_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    outline_of(f"open({str(mark)!r}, 'w')\nparser.add_argument('--rate', default=0.5)")

    assert not mark.exists()


def test_files_are_a_valid_experiment(tmp_path: Path) -> None:
    for name, text in files_of("train it.py", outline_of(SCRIPT)).items():
        (tmp_path / name).write_text(text)

    config = ExperimentConfig.load(tmp_path / CONFIG_FILE)

    config.validate()
    assert config.trial_command == f"python3 {WRAPPER_FILE}"
    assert config.tuner.class_args == {"optimize_mode": "maximize"}
    assert set(config.read_search_space()) == set(kinds(SCRIPT))
    assert "# --epochs is not tuned" in (tmp_path / SPACE_FILE).read_text()


@pytest.mark.parametrize(
    ("last", "result"),
    [
        (RESULT, "0.8"),
        ("print('mean 0.5, best 0.25')", "0.25"),
        ("import nni\nnni.report_final_result(7)", "7"),
    ],
)
def test_wrapper_reports_the_result_of_the_script(last: str, result: str, tmp_path: Path) -> None:
    text = SCRIPT.replace("required=True", "default=0").replace(RESULT, last)
    (tmp_path / "train.py").write_text(text)
    wrapper = files_of("train.py", outline_of(text))[WRAPPER_FILE]
    (tmp_path / WRAPPER_FILE).write_text(wrapper)

    done = subprocess.run(
        [sys.executable, WRAPPER_FILE, "input"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert result in (done.stdout + done.stderr).splitlines()[-1]


def test_annotated_script_needs_neither_space_nor_wrapper() -> None:
    text = "'''@nni.variable(nni.choice(1, 2), name=x)'''\nx = 1\n"

    files = files_of("train.py", outline_of(text))

    assert list(files) == [CONFIG_FILE]
    config = yaml.safe_load(files[CONFIG_FILE])
    assert (config["useAnnotation"], config["trialCommand"]) == (True, "python3 train.py")


def test_script_that_asks_for_parameters_is_the_trial_itself() -> None:
    files = files_of("train.py", outline_of(SCRIPT + "\nimport nni\nnni.get_next_parameter()"))

    assert WRAPPER_FILE not in files
    assert yaml.safe_load(files[CONFIG_FILE])["trialCommand"] == "python3 train.py"


def test_smaller_is_better_for_a_loss() -> None:
    files = files_of("train.py", outline_of(SCRIPT.replace("accuracy", "val_loss")))

    assert yaml.safe_load(files[CONFIG_FILE])["tuner"]["classArgs"]["optimize_mode"] == "minimize"


def test_script_without_anything_to_tune_is_refused() -> None:
    with pytest.raises(ValueError, match="has no argument to tune: add one such as"):
        files_of("train.py", outline_of("print(1)"))
