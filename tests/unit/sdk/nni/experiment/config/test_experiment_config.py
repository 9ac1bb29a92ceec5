from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

import nni
import nni_wire
from nni.experiment.config import (
    AlgorithmConfig,
    CustomAlgorithmConfig,
    ExperimentConfig,
    LocalConfig,
    RemoteConfig,
)
from nni.experiment.config.experiment_fields import DEFAULT_WORKING_DIRECTORY
from nni.experiment.errors import ConfigError
from nni.hpo import Uniform
from tests.support.experiment_configs import MINIMAL, SPACE, complete, write
from tests.support.schema_v1_samples import sample


def test_platforms_may_be_named_as_the_first_argument() -> None:
    assert ExperimentConfig("local", trial_concurrency=2).training_service == LocalConfig()
    assert ExperimentConfig(["local", "remote"]).training_service == [LocalConfig(), RemoteConfig()]


def test_platform_by_name_and_as_a_section_is_refused() -> None:
    with pytest.raises(ConfigError, match="trainingService must not be given together"):
        ExperimentConfig("local", training_service=LocalConfig())


def test_text_of_json_is_the_configuration() -> None:
    config = ExperimentConfig("local", trial_command="python3 trial.py")

    assert json.loads(config.json()) == config.to_dict()


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


def test_folder_of_the_code_is_that_of_the_file_unless_said(tmp_path: Path) -> None:
    config = ExperimentConfig.load(write(tmp_path / "c.yml", MINIMAL))

    assert config.trial_code_directory == tmp_path
    assert config.experiment_working_directory == Path(DEFAULT_WORKING_DIRECTORY).expanduser()


def test_file_of_schema_v1_is_converted_with_one_warning(tmp_path: Path) -> None:
    path = sample("local_assessor", tmp_path)

    with pytest.warns(UserWarning, match="has the schema of NNI 1.x") as caught:
        config = ExperimentConfig.load(path)

    assert [warning.filename for warning in caught] == [__file__]
    assert config.search_space_file == tmp_path / "search_space.json"
    config.validate()


def test_wrong_file_of_schema_v1_is_refused_by_its_name_without_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yml", "trainingServicePlatform: local")

    with pytest.raises(ConfigError, match=r"trial\.command must be given") as raised:
        ExperimentConfig.load(path)

    assert raised.value.source == str(path)


def test_null_in_a_file_of_schema_v1_is_a_field_that_is_not_given(tmp_path: Path) -> None:
    old = write(tmp_path / "old.yml", sample("pai", tmp_path).read_text() + "logDir:\n")

    config = ExperimentConfig.load(old, warn=lambda _: None)

    root = Path(DEFAULT_WORKING_DIRECTORY).expanduser()
    assert config.experiment_working_directory == root


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
    # Without `site`, editable distributions are found by the path only.
    sources = (str(Path(one.__path__[0]).parent) for one in (nni, nni_wire))
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sources])}

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
