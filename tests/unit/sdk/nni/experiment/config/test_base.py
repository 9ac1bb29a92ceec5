"""Fields in two spellings, and their errors."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from nni.experiment.config import (
    ExperimentConfig,
    LocalConfig,
    RemoteConfig,
    RemoteMachineConfig,
)
from nni.experiment.errors import ConfigError
from tests.support.experiment_configs import MINIMAL, complete, write


@pytest.mark.claim("platform", 3)
def test_paths_in_python_count_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = ExperimentConfig()

    config.search_space_file = "space.json"  # type: ignore[assignment]  # texts are accepted
    config.trial_code_directory = Path("code")

    assert config.search_space_file == tmp_path / "space.json"
    assert config.trial_code_directory == tmp_path / "code"


@pytest.mark.claim("platform", 5)
@pytest.mark.parametrize("text", ["10", "5w", "-1m", 10])
def test_wrong_duration_names_the_field(text: object) -> None:
    with pytest.raises(ConfigError, match="maxExperimentDuration must be a number followed by"):
        complete(max_experiment_duration=text)


def test_duration_may_be_a_timedelta() -> None:
    config = complete()

    config.max_trial_duration = timedelta(minutes=2)  # type: ignore[assignment]  # accepted

    assert config.max_trial_duration == "120s"


@pytest.mark.claim("platform", 6)
def test_null_is_not_given(tmp_path: Path) -> None:
    config = ExperimentConfig.load(write(tmp_path / "c.yml", MINIMAL + "maxTrialNumber: null\n"))

    assert config.max_trial_number is None
    assert "maxTrialNumber" not in config.to_dict()


@pytest.mark.parametrize("key", ["trial_concurrency", "trialConcurrency"])
def test_both_spellings_are_read(key: str, tmp_path: Path) -> None:
    text = MINIMAL.replace("trialConcurrency", key)

    assert ExperimentConfig.load(write(tmp_path / "c.yml", text)).trial_concurrency == 2


def test_both_spellings_of_one_field_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yml", MINIMAL + "trial_concurrency: 3\n")

    with pytest.raises(ConfigError, match="trialConcurrency must not be given again"):
        ExperimentConfig.load(path)


def test_unknown_field_names_its_place_and_a_close_match(tmp_path: Path) -> None:
    text = MINIMAL.replace("{name: Random}", "{name: Random, clasArgs: {}}")

    with pytest.raises(ConfigError, match=r"tuner\.clasArgs is no field.*mean classArgs"):
        ExperimentConfig.load(write(tmp_path / "c.yml", text))


def test_misspelt_attribute_is_refused() -> None:
    config = ExperimentConfig()

    with pytest.raises(ConfigError, match="did you mean trial_concurrency"):
        config.trial_concurency = 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("trial_concurrency", 0),
        ("trial_concurrency", "2"),
        ("trial_concurrency", True),
        ("max_trial_number", 0),
        ("trial_gpu_number", -1),
        ("trial_command", 3),
        ("debug", "yes"),
        ("experiment_name", ["a"]),
        ("training_service", "local"),
        ("training_service", {"platform": "locl"}),
        ("training_service", {"useActiveGpu": True}),
        ("training_service", {"platform": "openpai", "trialMemorySize": "8"}),
        ("seed", -1),
        ("objectives", [{"mode": "most"}]),
    ],
)
def test_assignments_are_checked_and_name_the_field(field: str, value: object) -> None:
    config = complete()

    with pytest.raises(ConfigError, match=field):
        setattr(config, field, value)


def test_wrong_secret_is_not_shown() -> None:
    with pytest.raises(ConfigError, match="password must be a text") as raised:
        RemoteMachineConfig(host="h", user="u", password=12345)  # type: ignore[arg-type] # wrong

    assert "12345" not in str(raised.value)
    assert "12345" not in str(raised.value.__cause__)


def test_paths_of_secrets_are_those_of_the_fields_that_are_given() -> None:
    first = RemoteMachineConfig(host="a", user="u", password="one")
    second = RemoteMachineConfig(host="b", user="u", ssh_key_file=Path("k"), ssh_passphrase="two")

    section = RemoteConfig(machine_list=[first, second])

    assert section.secret_paths() == ["machineList[0].password", "machineList[1].sshPassphrase"]
    assert LocalConfig().secret_paths() == []
