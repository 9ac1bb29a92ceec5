"""Rules of a configuration that span several fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni.experiment.config import ExperimentConfig
from nni.experiment.errors import ConfigError
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
