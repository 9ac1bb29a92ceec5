from pathlib import Path
from typing import Any

import pytest

from nni.compression.experiment import AutoCompressionExperiment
from nni.compression.experiment.auto_compression import trial_command
from nni.experiment.config import ExperimentConfig
from nni.experiment.errors import ConfigError
from tests.unit.sdk.nni.compression.experiment.compressed_module import Plain

HERE = Path(__file__).parent


def test_a_trial_runs_the_file_of_the_class_by_its_relative_path() -> None:
    assert trial_command(Plain, HERE.parent) == (
        "python3 -m nni.compression.experiment.trial_entry "
        "--module_file_name experiment/compressed_module.py --module_class_name Plain"
    )


@pytest.mark.claim("compression", 88)
def test_a_module_outside_the_code_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"trialCodeDirectory.*must hold the file of Plain"):
        trial_command(Plain, tmp_path)


@pytest.mark.parametrize("module", [3, Plain(), dict])
def test_the_module_must_be_a_class_of_the_interface(module: Any) -> None:
    with pytest.raises(TypeError, match="must be a class that derives from AbstractAutoCompress"):
        AutoCompressionExperiment(module)


def test_the_configuration_is_that_of_any_experiment() -> None:
    config = ExperimentConfig(training_service={"platform": "local"})

    experiment = AutoCompressionExperiment(Plain, config)

    assert experiment.config is config
    assert experiment.auto_compress_module is Plain
