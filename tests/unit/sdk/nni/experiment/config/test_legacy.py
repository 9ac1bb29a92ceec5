from __future__ import annotations

from typing import Any

import pytest

from nni.experiment.config.legacy import refuse_legacy
from nni.experiment.errors import ConfigError

OLD: dict[object, Any] = {
    "authorName": "a",
    "trialConcurrency": 1,
    "maxExecDuration": "1h",
    "maxTrialNum": 10,
    "trainingServicePlatform": "remote",
    "searchSpacePath": "s.json",
    "logDir": "d",
    "tuner": {"builtinTunerName": "TPE", "classArgs": {}, "gpuIndices": "0"},
    "trial": {"command": "c", "codeDir": ".", "gpuNum": 0},
    "machineList": [{"ip": "h", "username": "u", "passwd": "p"}],
    "remoteConfig": {"reuse": True},
}


def test_every_old_field_is_named_with_its_new_one() -> None:
    with pytest.raises(ConfigError) as raised:
        refuse_legacy(OLD)

    named = {problem.field: problem.rule for problem in raised.value.problems}
    assert named["maxTrialNum"] == "is now maxTrialNumber"
    assert named["trial.codeDir"] == "is now trialCodeDirectory"
    assert named["tuner.builtinTunerName"] == "is now tuner.name"
    assert named["tuner.gpuIndices"] == "is now tunerGpuIndices"
    assert named["machineList[].ip"] == "is now trainingService.machineList[].host"
    assert named["remoteConfig.reuse"] == "is now trainingService.reuseMode"
    assert named["authorName"] == "has no counterpart; leave it out"


def test_fields_that_kept_their_name_are_not_named() -> None:
    with pytest.raises(ConfigError) as raised:
        refuse_legacy(OLD)

    fields = {problem.field for problem in raised.value.problems}
    assert not fields & {"trialConcurrency", "tuner.classArgs"}


def test_both_schemas_in_one_file_are_refused() -> None:
    with pytest.raises(ConfigError, match="mixes the old schema"):
        refuse_legacy({**OLD, "trainingService": {"platform": "local"}})


def test_new_schema_passes() -> None:
    document: dict[object, object] = {"trialCommand": "c", "trainingService": {"platform": "local"}}

    refuse_legacy(document)

    assert set(document) == {"trialCommand", "trainingService"}
