"""Rules of a configuration that span several fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni.experiment.config import ExperimentConfig
from nni.experiment.errors import ConfigError
from nni_wire.limits import SEARCH_SPACE_LIMIT_BYTES
from tests.support.third_party import third_party

__all__ = ["third_party"]  # fixture


@pytest.mark.usefixtures("third_party")
def test_an_assessor_is_refused_beside_a_tuner_that_declares_so() -> None:
    config = ExperimentConfig(
        search_space={"x": {"_type": "uniform", "_value": [0, 1]}},
        trial_command="python3 trial.py",
        trial_concurrency=1,
        tuner={"name": "Alone"},
        assessor={"name": "Medianstop"},
        training_service={"platform": "local"},
    )

    with pytest.raises(ConfigError, match="assessor must not be given together with Alone"):
        config.validate()
    config.tuner = config.tuner.model_copy(update={"name": "Lucky"})
    config.validate()


def test_current_folder_whose_name_is_not_utf_8_is_refused_as_code_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a\udcff"
    folder.mkdir()
    monkeypatch.chdir(folder)
    config = ExperimentConfig(
        search_space={},
        trial_command="python3 trial.py",
        trial_concurrency=1,
        tuner={"name": "Random"},
        training_service={"platform": "local"},
    )

    with pytest.raises(ConfigError, match=r"trialCodeDirectory must be text .*rename"):
        config.validate()


def test_broken_file_of_a_search_space_is_named_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "space.json"
    file.write_text('{"x": 1,\n "y": }')
    config = ExperimentConfig(
        search_space_file=file,
        trial_command="python3 trial.py",
        trial_concurrency=1,
        tuner={"name": "Random"},
        training_service={"platform": "local"},
    )

    with pytest.raises(ConfigError, match=r"searchSpaceFile .*space\.json: line 2, column 7 is"):
        config.validate()


def test_a_search_space_that_no_request_holds_is_refused_with_a_remedy() -> None:
    def config_of(characters: int) -> ExperimentConfig:
        return ExperimentConfig(
            search_space={"x": {"_type": "choice", "_value": ["a" * characters, "b"]}},
            trial_command="python3 trial.py",
            trial_concurrency=1,
            tuner={"name": "Random"},
            training_service={"platform": "local"},
        )

    config_of(SEARCH_SPACE_LIMIT_BYTES - 100).validate()
    with pytest.raises(ConfigError, match=r"searchSpace must be at most 16,777,216 bytes .* file"):
        config_of(SEARCH_SPACE_LIMIT_BYTES).validate()
