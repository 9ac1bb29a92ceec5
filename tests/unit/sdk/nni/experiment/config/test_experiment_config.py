from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest

import nni
from nni.experiment.config import (
    AlgorithmConfig,
    CustomAlgorithmConfig,
    ExperimentConfig,
    LocalConfig,
    RemoteConfig,
    RemoteMachineConfig,
)
from nni.experiment.config.experiment_fields import DEFAULT_WORKING_DIRECTORY
from nni.experiment.errors import ConfigError
from nni.hpo import Uniform

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def complete(**changes: object) -> ExperimentConfig:
    fields: dict[str, Any] = {
        "search_space": SPACE,
        "trial_command": "python3 trial.py",
        "trial_concurrency": 2,
        "tuner": {"name": "Random"},
        "training_service": {"platform": "local"},
    }
    return ExperimentConfig(**{**fields, **changes})


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


MINIMAL = """
searchSpace: {x: {_type: uniform, _value: [1e-5, 1]}}
trialCommand: python3 trial.py
trialConcurrency: 2
tuner: {name: Random}
trainingService: {platform: local}
"""


def test_minimal_file_is_complete(tmp_path: Path) -> None:
    config = ExperimentConfig.load(write(tmp_path / "c.yml", MINIMAL))

    config.validate()
    assert isinstance(config.training_service, LocalConfig)
    assert config.read_search_space()["x"]["_value"] == [0.00001, 1]


@pytest.mark.claim("platform", 3)
def test_paths_of_a_file_count_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "searchSpaceFile: space.json\ntrialCodeDirectory: code"
    path = write(tmp_path / "a" / "b" / "c.yml", text)
    monkeypatch.chdir("/")

    config = ExperimentConfig.load(path)

    assert config.search_space_file == tmp_path / "a" / "b" / "space.json"
    assert config.trial_code_directory == tmp_path / "a" / "b" / "code"


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


def test_folder_of_the_code_is_that_of_the_file_unless_said(tmp_path: Path) -> None:
    config = ExperimentConfig.load(write(tmp_path / "c.yml", MINIMAL))

    assert config.trial_code_directory == tmp_path
    assert config.experiment_working_directory == Path(DEFAULT_WORKING_DIRECTORY).expanduser()


@pytest.mark.claim("platform", 4)
def test_home_is_expanded_in_every_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    text = """
searchSpaceFile: ~/s.json
trialCodeDirectory: ~/code
experimentWorkingDirectory: ~/work
tuner: {className: a.B, codeDirectory: ~/tuner}
trainingService: {platform: remote, machineList: [{host: h, user: u, sshKeyFile: ~/key}]}
"""
    config = ExperimentConfig.load(write(tmp_path / "d" / "c.yml", text))

    remote = config.training_service
    assert isinstance(remote, RemoteConfig)
    assert config.search_space_file == tmp_path / "s.json"
    assert config.trial_code_directory == tmp_path / "code"
    assert config.experiment_working_directory == tmp_path / "work"
    assert config.tuner is not None
    assert config.tuner.code_directory == tmp_path / "tuner"
    assert remote.machine_list[0].ssh_key_file == tmp_path / "key"


@pytest.mark.claim("platform", 15)
def test_saved_file_is_absolute_and_loads_back_equal(tmp_path: Path) -> None:
    text = (
        MINIMAL
        + """
trialCodeDirectory: .
maxTrialNumber: 5
max_experiment_duration: 0.5h
tunerGpuIndices: "0,2"
assessor: {name: Medianstop, classArgs: {start_step: 2}}
objectives: [{metric: default, mode: maximize}]
tags: {team: a}
seed: 7
"""
    )
    config = ExperimentConfig.load(write(tmp_path / "one" / "c.yml", text))

    config.save(tmp_path / "two.yml")

    saved = (tmp_path / "two.yml").read_text()
    assert f"trialCodeDirectory: {tmp_path / 'one'}" in saved
    assert ExperimentConfig.load(tmp_path / "two.yml") == config


@pytest.mark.claim("platform", 16)
def test_arguments_of_the_tuner_exist_before_they_are_touched() -> None:
    config = ExperimentConfig()

    assert config.tuner is not None
    config.tuner.class_args["optimize_mode"] = "maximize"
    config.tuner.name = "TPE"

    assert config.to_dict()["tuner"] == {
        "name": "TPE",
        "classArgs": {"optimize_mode": "maximize"},
    }


def test_sections_that_were_not_filled_in_are_not_given() -> None:
    config = ExperimentConfig()

    assert config.given("assessor") is None
    assert not {"tuner", "assessor", "advisor"} & config.to_dict().keys()


@pytest.mark.claim("platform", 7)
@pytest.mark.parametrize("spelling", ["0,2", [0, 2]])
def test_gpus_of_the_tuner_become_a_list(spelling: object) -> None:
    assert complete(tuner_gpu_indices=spelling).tuner_gpu_indices == [0, 2]


@pytest.mark.claim("platform", 1)
def test_two_search_spaces_are_refused_by_their_names(tmp_path: Path) -> None:
    space = write(tmp_path / "s.json", json.dumps(SPACE))

    with pytest.raises(ConfigError, match="searchSpace and searchSpaceFile"):
        complete(search_space_file=space).validate()


@pytest.mark.claim("platform", 2)
def test_missing_search_space_is_refused_and_an_empty_one_accepted() -> None:
    with pytest.raises(ConfigError, match="searchSpace must be given"):
        complete(search_space=None).validate()
    complete(search_space={}, tuner=CustomAlgorithmConfig(class_name="json.B")).validate()


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


@pytest.mark.claim("platform", 8)
@pytest.mark.claim("hpo", 51)
def test_advisor_excludes_tuner_and_assessor() -> None:
    with pytest.raises(ConfigError, match="advisor must not be given together with tuner"):
        complete(advisor={"className": "json.B"}).validate()
    with pytest.raises(ConfigError, match="together with assessor"):
        complete(
            tuner=None, assessor={"name": "Medianstop"}, advisor={"className": "json.B"}
        ).validate()


@pytest.mark.claim("platform", 8)
@pytest.mark.claim("hpo", 51)
def test_population_based_training_takes_no_assessor() -> None:
    with pytest.raises(ConfigError, match="assessor must not be given together with PBTTuner"):
        complete(tuner={"name": "PBTTuner"}, assessor={"name": "Medianstop"}).validate()


@pytest.mark.claim("platform", 9)
def test_gpus_on_this_machine_need_a_word_on_active_ones() -> None:
    with pytest.raises(ConfigError, match=r"trainingService\.useActiveGpu must be true or false"):
        complete(trial_gpu_number=1).validate()
    complete(trial_gpu_number=1, training_service=LocalConfig(use_active_gpu=False)).validate()


@pytest.mark.claim("platform", 11)
def test_unknown_log_level_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"logLevel must be .*'debug'.*got 'verbose'"):
        complete(log_level="verbose")


@pytest.mark.claim("platform", 11)
def test_debug_lowers_the_log_level_unless_one_is_given() -> None:
    assert complete().effective_log_level() == "info"
    assert complete(debug=True).effective_log_level() == "debug"
    assert complete(debug=True, log_level="error").effective_log_level() == "error"


@pytest.mark.claim("hpo", 47)
def test_arguments_are_checked_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="start_step"):
        complete(assessor={"name": "Medianstop", "classArgs": {"start_step": -1}}).validate()


def test_search_space_of_a_built_in_tuner_is_checked() -> None:
    with pytest.raises(ConfigError, match=r"'x'.*_type must be one of"):
        complete(search_space={"x": {"_type": "unifor", "_value": [0, 1]}}).validate()


def test_search_space_of_a_custom_tuner_is_free() -> None:
    config = complete(search_space=[1, "anything"], tuner={"className": "json.B"})

    config.validate()

    assert config.search_space == [1, "anything"]


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


def test_every_broken_rule_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        ExperimentConfig().validate()

    fields = [problem.field for problem in raised.value.problems]
    assert fields == [
        "trialCommand",
        "trialConcurrency",
        "trainingService",
        "searchSpace",
    ]


def test_no_tuner_is_a_choice_too() -> None:
    made = complete()
    made.tuner = AlgorithmConfig()

    made.validate()

    assert made.tuner == AlgorithmConfig()


def test_code_directory_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="trialCodeDirectory must exist"):
        complete(trial_code_directory=tmp_path / "nope").validate()
    with pytest.raises(ConfigError, match="trialCodeDirectory must be a folder"):
        complete(trial_code_directory=write(tmp_path / "file", "")).validate()


def test_algorithm_has_one_source() -> None:
    with pytest.raises(ConfigError, match="only one of name and className"):
        complete(tuner={"name": "TPE", "className": "json.B"}).validate()
    with pytest.raises(ConfigError, match="codeDirectory is only for className"):
        complete(tuner=AlgorithmConfig(name="TPE", code_directory=Path())).validate()
    with pytest.raises(ConfigError, match="must be a module and a class"):
        complete(tuner={"className": "MyTuner"}).validate()


@pytest.mark.parametrize("name", ["nowhere.Tuner", "package.nowhere.Tuner"])
def test_module_of_a_class_must_exist(name: str, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()

    with pytest.raises(ConfigError, match=r"tuner\.className must name a module that exists"):
        complete(tuner={"className": name, "codeDirectory": tmp_path}).validate()


@pytest.mark.parametrize("name", ["mine.Tuner", "package.mine.Tuner", "json.decoder.Tuner"])
def test_module_of_a_class_is_not_imported_to_find_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    for place in (tmp_path, tmp_path / "package"):
        (place / "mine.py").write_text("raise RuntimeError")

    complete(tuner={"className": name, "codeDirectory": tmp_path}).validate()

    assert not {"mine", "package", "package.mine"} & set(sys.modules)


def test_missing_extra_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.name.partition("-")[0] not in {"numpy", "numpy.libs"}:
            (tmp_path / entry.name).symlink_to(entry)
    program = (
        "from nni.experiment.config import ExperimentConfig\n"
        f"config = ExperimentConfig.load({str(write(tmp_path / 'c.yml', MINIMAL))!r})\n"
        "config.tuner.name = 'TPE'\n"
        "config.validate()"
    )
    variables = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(nni.__file__).parents[1]}"}

    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )

    said = done.stderr.splitlines()[-1]
    assert re.search(r"tuner TPE needs .*numpy.*pip install 'nni\[hpo\]'", said), done.stderr
    assert said.startswith("nni.experiment.errors.ConfigError")


def test_class_looked_for_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert CustomAlgorithmConfig(class_name="json.B").code_directory == tmp_path


def test_several_platforms_are_a_list() -> None:
    config = complete(training_service=[{"platform": "local"}, {"platform": "pai"}])

    assert [service.platform for service in config.training_services()] == ["local", "openpai"]


def test_error_in_a_list_of_platforms_names_the_item() -> None:
    with pytest.raises(ConfigError, match=r"trainingService\[1\]\.machineList\[0\]\.host"):
        complete(
            training_service=[
                {"platform": "local"},
                {"platform": "remote", "machineList": [{"user": "u"}]},
            ]
        )


@pytest.mark.claim("platform", 84)
def test_secrets_do_not_show_in_texts() -> None:
    config = RemoteConfig(machine_list=[RemoteMachineConfig(host="h", user="u", password="s3cret")])

    assert "s3cret" not in repr(config)
    assert "s3cret" not in str(config)


def test_json_is_the_file_as_json() -> None:
    config = complete()

    assert json.loads(config.json()) == config.to_dict()


def test_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be a mapping of fields"):
        ExperimentConfig.load(write(tmp_path / "c.yml", "- 1"))


@dataclass
class TypedSpace:
    x: Annotated[float, Uniform(0, 1)]


@dataclass
class NoSpace:
    x: int


def test_type_is_a_search_space(tmp_path: Path) -> None:
    config = complete()

    config.search_space = TypedSpace
    config.save(tmp_path / "config.yml")

    assert config.search_space == SPACE
    assert ExperimentConfig.load(tmp_path / "config.yml").search_space == SPACE
    assert complete(search_space=TypedSpace) == complete()


def test_type_that_describes_no_space_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"searchSpace NoSpace\.x must have a default"):
        complete(search_space=NoSpace)


def test_tuner_that_a_server_runs_needs_no_class() -> None:
    config = complete(tuner={"serverAddress": "127.0.0.1:50080"})

    config.validate()

    assert config.tuner.server_address == "127.0.0.1:50080"


@pytest.mark.parametrize("address", ["50080", "host:", ":50080", "host:http"])
def test_address_of_a_tuner_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"tuner\.serverAddress must be host:port"):
        complete(tuner={"serverAddress": address}).validate()


def test_only_a_tuner_may_be_run_by_a_server() -> None:
    with pytest.raises(ConfigError, match=r"assessor\.serverAddress is only for a tuner"):
        complete(assessor={"serverAddress": "127.0.0.1:50080"}).validate()
