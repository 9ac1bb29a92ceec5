from __future__ import annotations

import copy
from pathlib import Path, PurePath
from typing import Any

import pytest

from nni.experiment.config import ExperimentConfig, RemoteConfig
from nni.experiment.config.base import paths_relative_to
from nni.experiment.config.schema_v1 import convert_v1, is_v1
from nni.experiment.config.schema_v1_platforms import PLATFORMS_V1
from nni.experiment.config.training_services import REMOVED_PLATFORMS
from nni.experiment.config.yaml_file import read_yaml
from nni.experiment.errors import ConfigError
from tests.support.schema_v1_samples import NAMES, SAMPLES, document, sample

WITHOUT_SUCCESSOR = {"dlts"}
"""Samples of platforms that are refused by name."""
INCOMPLETE = "frameworkcontroller_template"
"""The commands of this sample stand in a file of FrameworkController."""


def converted(**changes: Any) -> dict[str, Any]:
    return convert_v1(document(**changes)).document


def refusal(**changes: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        convert_v1(document(**changes))
    return str(raised.value)


def loaded(name: str, folder: Path) -> tuple[ExperimentConfig, list[str]]:
    warnings: list[str] = []
    config = ExperimentConfig.load(sample(name, folder), warn=warnings.append)
    return config, warnings


def test_there_is_a_sample_of_every_platform_that_the_documentation_has_one_of() -> None:
    platforms = {read_yaml(path, "")["trainingServicePlatform"] for path in SAMPLES.glob("*.yml")}

    assert len(NAMES) == 14
    assert platforms == set(PLATFORMS_V1) - {"aml"}


@pytest.mark.claim("platform", 12)
@pytest.mark.parametrize("name", sorted(set(NAMES) - WITHOUT_SUCCESSOR - {INCOMPLETE}))
def test_sample_is_a_valid_configuration_of_schema_v2(name: str, tmp_path: Path) -> None:
    config, warnings = loaded(name, tmp_path)

    config.validate()
    assert config.trial_code_directory.is_relative_to(tmp_path)
    assert len(warnings) == 1
    assert "Without meaning here: authorName" in warnings[0]


@pytest.mark.claim("platform", 12)
@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_a_sample_is_converted(name: str) -> None:
    old = read_yaml(SAMPLES / f"{name}.yml", "")

    new = convert_v1(old).document

    kept = {"trialConcurrency", "experimentName", "maxTrialNumber"}
    assert kept <= set(new)
    assert new["trainingService"]["platform"] == old["trainingServicePlatform"].replace(
        "pai", "openpai"
    )


def test_template_of_frameworkcontroller_is_loaded(tmp_path: Path) -> None:
    config, warnings = loaded(INCOMPLETE, tmp_path)

    assert config.training_service.config_path == tmp_path / "template.yml"
    assert config.log_level == "trace"
    assert len(warnings) == 1


@pytest.mark.parametrize("name", sorted(WITHOUT_SUCCESSOR))
def test_platform_without_a_successor_is_refused_by_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no public API; use kubeflow") as raised:
        loaded(name, tmp_path)

    assert "trainingService.platform must be one of" in str(raised.value)
    assert name in REMOVED_PLATFORMS


@pytest.mark.claim("platform", 12)
def test_trials_of_a_v1_file_share_no_job_unless_it_says_so(tmp_path: Path) -> None:
    config, _ = loaded("remote", tmp_path)

    service = config.training_service
    assert isinstance(service, RemoteConfig)
    assert service.reuse_mode is False
    assert [machine.host for machine in service.machine_list] == [
        "10.0.0.10",
        "10.0.0.11",
        "10.0.0.12",
    ]
    assert service.machine_list[2].ssh_key_file == tmp_path / "sshkey"


@pytest.mark.claim("platform", 13)
def test_defaults_of_schema_v1_for_limits_are_no_limits() -> None:
    new = ExperimentConfig(
        **converted(maxTrialNum=99999, maxExecDuration="999d", maxTrialDuration="999d")
    )

    assert new.max_trial_number is None
    assert new.max_experiment_duration is None
    assert new.max_trial_duration is None


def test_other_limits_are_kept() -> None:
    new = converted(maxTrialNum=5, maxExecDuration="1h", maxTrialDuration="10m")

    assert new["maxTrialNumber"] == 5
    assert new["maxExperimentDuration"] == "1h"
    assert new["maxTrialDuration"] == "10m"


@pytest.mark.claim("platform", 14)
def test_class_in_a_file_becomes_module_and_class_below_the_folder_of_the_config(
    tmp_path: Path,
) -> None:
    tuner = {"codeDir": "t", "classFileName": "my.py", "className": "T"}

    with paths_relative_to(tmp_path):
        new = ExperimentConfig(**converted(tuner=tuner))

    assert new.tuner.class_name == "my.T"
    assert new.tuner.code_directory == tmp_path / "t"


@pytest.mark.parametrize(
    ("file_name", "class_name"), [("my.py", "my.T"), ("./my.py", "my.T"), ("a/b/my.py", "a.b.my.T")]
)
def test_path_of_a_class_becomes_its_module(file_name: str, class_name: str) -> None:
    tuner = {"codeDirectory": "t", "classFileName": file_name, "className": "T"}

    assert converted(tuner=tuner)["tuner"] == {"className": class_name, "codeDirectory": "t"}


@pytest.mark.parametrize("file_name", ["my", "/abs/my.py", "../my.py", "my.tuner.py", "my.txt"])
def test_file_of_a_class_must_lie_below_its_folder(file_name: str) -> None:
    tuner = {"codeDir": "t", "classFileName": file_name, "className": "T"}

    assert "tuner.classFileName must be a Python file below codeDir" in refusal(tuner=tuner)


def test_algorithms_keep_names_arguments_and_gpus() -> None:
    new = converted(
        tuner={"builtinTunerName": "TPE", "classArgs": {"seed": 1}, "gpuIndices": "0,2"},
        assessor={"builtinAssessorName": "Medianstop"},
    )

    assert new["tuner"] == {"name": "TPE", "classArgs": {"seed": 1}}
    assert new["assessor"] == {"name": "Medianstop"}
    assert new["tunerGpuIndices"] == [0, 2]


@pytest.mark.claim("platform", 22)
def test_intermediate_results_of_stopped_trials_are_included_as_before() -> None:
    tuner = {"builtinTunerName": "TPE", "includeIntermediateResults": True}

    assert ExperimentConfig(**converted(tuner=tuner)).include_intermediate_results


def test_advisor_takes_the_place_of_tuner_and_assessor() -> None:
    result = convert_v1(
        document(
            advisor={"builtinAdvisorName": "BOHB", "gpuIndices": 1},
            assessor={"builtinAssessorName": "Medianstop"},
        )
    )

    assert result.document["advisor"] == {"name": "BOHB"}
    assert result.document["tunerGpuIndices"] == [1]
    assert not {"tuner", "assessor"} & set(result.document)
    assert result.dropped == ("tuner (the advisor is both)", "assessor (the advisor is both)")


def test_fields_with_the_same_name_are_kept() -> None:
    storage = {"storageType": "NFS", "localMountPoint": "/m"}
    fields = {
        "debug": True,
        "logLevel": "trace",
        "nniManagerIp": "10.0.0.1",
        "sharedStorage": storage,
    }

    new = converted(**fields)

    assert {name: new[name] for name in fields} == fields


def test_paths_stay_as_written_without_a_folder() -> None:
    new = converted(logDir="logs", trial={"command": "c", "codeDir": "code"})

    assert new["experimentWorkingDirectory"] == "logs"
    assert new["trialCodeDirectory"] == "code"
    assert new["searchSpaceFile"] == "space.json"


def test_paths_are_joined_to_a_folder() -> None:
    old = document(logDir="~/logs", trial={"command": "c", "codeDir": "/code"})

    new = convert_v1(old, PurePath("/folder")).document

    assert new["experimentWorkingDirectory"] == "~/logs"
    assert new["trialCodeDirectory"] == "/code"
    assert new["searchSpaceFile"] == "/folder/space.json"


def test_document_is_not_changed_and_shares_nothing_with_the_new_one() -> None:
    old = document(tuner={"builtinTunerName": "TPE", "classArgs": {"deep": [1]}})
    before = copy.deepcopy(old)

    new = convert_v1(old).document
    new["tuner"]["classArgs"]["deep"].append(2)

    assert old == before


def test_one_warning_names_all_fields_without_meaning() -> None:
    result = convert_v1(
        document(
            authorName="ann",
            versionCheck=False,
            multiThread=True,
            multiPhase=False,
            logCollection="http",
            experimentName=None,
        )
    )

    assert result.warning("old.yml") == (
        "old.yml has the schema of NNI 1.x (v1) and is read as schema v2. Without meaning here: "
        "authorName, versionCheck, multiThread, multiPhase, logCollection. It has no "
        "experimentName. To write the file anew: nnictl config convert old.yml"
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"searchSpacePath": None}, "searchSpacePath must be given, or useAnnotation: true"),
        (
            {"useAnnotation": True},
            "searchSpacePath must not be given with useAnnotation: true, got 'space.json'",
        ),
        ({"tuner": None}, "tuner must be given (or advisor)"),
        (
            {"tuner": {"classArgs": {}}},
            "tuner.builtinTunerName must be given (or codeDir, classFileName and className)",
        ),
        (
            {"tuner": {"builtinTunerName": "TPE", "className": "T"}},
            "tuner.builtinTunerName must not be given with className, got 'TPE' (keep the name",
        ),
        ({"tuner": {"className": "T"}}, "tuner.classFileName must be given"),
        ({"tuner": {"className": "T"}}, "tuner.codeDir must be given"),
        (
            {"tuner": {"codeDir": ".", "codeDirectory": "."}},
            "tuner.codeDir must not be given again",
        ),
        (
            {"tuner": {"codeDir": ".", "classFileName": "a.py", "className": "a.T"}},
            "tuner.className must be the name of a class, got 'a.T'",
        ),
        (
            {"tuner": {"builtinTunerName": "TPE", "classArgs": [1]}},
            "tuner.classArgs must be a mapping of names to values, got [1]",
        ),
        (
            {"assessor": {"builtinTunerName": "Medianstop"}},
            "assessor.builtinTunerName is no field of schema v1 (did you mean builtin",
        ),
        ({"maxTrialNum": 0}, "maxTrialNum must be an integer from 1 to 99999, got 0"),
        ({"maxExecDuration": "1w"}, "maxExecDuration must be a number followed by s, m, h or d"),
        (
            {"trainingServicePlatform": "openpai"},
            "trainingServicePlatform must be one of local, remote, pai, kubeflow",
        ),
        ({"maxTrialNumber": 5}, "maxTrialNumber is no field of schema v1 (schema v1 calls it max"),
        (
            {"trialCommand": "c"},
            "trialCommand is no field of schema v1 (schema v1 calls it trial.c",
        ),
        ({"seed": 5}, "seed is no field of schema v1 (it is of schema v2; convert the file with:"),
        ({"maxTrialNums": 5}, "maxTrialNums is no field of schema v1 (did you mean maxTrialNum?)"),
    ],
)
def test_broken_rule_is_named_with_its_field_and_remedy(
    changes: dict[str, Any], problem: str
) -> None:
    assert problem in refusal(**changes)


def test_wrong_platform_is_the_only_problem_of_its_sections() -> None:
    found = refusal(trainingServicePlatform="lokal", localConfig={"useActiveGpu": True})

    assert found.count("\n") == 0
    assert "did you mean local?" in found


def test_every_problem_is_named_at_once() -> None:
    found = refusal(tuner=None, trial={"command": 5}, maxTrialNum="10")

    assert [line.split()[0] for line in found.split("\n  ")[1:]] == [
        "maxTrialNum",
        "tuner",
        "trial.codeDir",
        "trial.command",
    ]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["trainingServicePlatform"], True),
        (["trialCommand"], False),
        (["trainingService"], False),
        (["trainingServicePlatform", "trainingService"], False),
        (["trainingServicePlatform", "training_service"], False),
    ],
)
def test_schema_is_known_by_the_field_of_its_platform(keys: list[str], expected: bool) -> None:
    assert is_v1(dict.fromkeys(keys, "local")) is expected
