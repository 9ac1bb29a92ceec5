"""Forms in which a tuner that takes over is named."""

from pathlib import Path
from typing import Any

import pytest

from nni.experiment.config import AlgorithmConfig
from nni.experiment.config.replacement_tuner import load_replacement_tuner, replacement_tuner
from nni.experiment.errors import ConfigError

SECTION: dict[str, Any] = {"name": "TPE", "classArgs": {"optimize_mode": "minimize"}}


@pytest.mark.parametrize("value", [SECTION, {"tuner": SECTION}, AlgorithmConfig(**SECTION)])
def test_section_has_three_forms(value: Any) -> None:
    assert replacement_tuner(value).to_dict() == SECTION


def test_name_alone_is_enough() -> None:
    assert replacement_tuner("Random").name == "Random"


def test_several_tuners_share_the_trials() -> None:
    found = replacement_tuner(
        {"tuners": [{"name": "TPE"}, {"name": "Random"}], "tunerPolicy": "bandit"}
    )

    assert found.name == "Portfolio"
    assert found.class_args["policy"] == "bandit"


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, "tuner.name"),
        (7, "tuner"),
        ({"name": "TPE", "classArg": {}}, "classArg"),
        ({"tuner": SECTION, "assessor": {"name": "Medianstop"}}, "assessor"),
        ({"tuners": [{"name": "TPE"}]}, "tuners"),
        ({"tuner": SECTION, "tuners": [{"name": "TPE"}, {"name": "Random"}]}, "tuners"),
    ],
)
def test_value_without_a_valid_tuner_is_refused(value: Any, field: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        replacement_tuner(value)

    assert field in str(refusal.value)


def test_folders_in_a_file_start_at_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    path = tmp_path / "tuner.yml"
    path.write_text("className: mine.Mine\ncodeDirectory: .\n")

    assert load_replacement_tuner(path).code_directory == tmp_path


def test_error_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tuner.json"
    path.write_text('{"nam": "TPE"}')

    with pytest.raises(ConfigError, match=r"tuner\.json"):
        load_replacement_tuner(path)
