"""Conversion of configurations between protobuf and JSON of schema v2."""

from __future__ import annotations

from typing import Any

import pytest

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_manager.converters.secret_texts import MASK
from svc_manager.web.records.config import (
    config_from_json,
    config_to_json,
    mask_secrets,
    optimize_mode,
)

FULL: dict[str, Any] = {
    "experimentName": "all of it",
    "searchSpace": {"token": {"_type": "choice", "_value": [1, 2]}},
    "trialCommand": "python3 trial.py",
    "trialCodeDirectory": "/code",
    "trialConcurrency": 3,
    "trialGpuNumber": 0,
    "maxExperimentDuration": "3600s",
    "maxTrialNumber": 9,
    "maxTrialDuration": "1.5s",
    "maxTrialRetries": 0,
    "includeIntermediateResults": True,
    "logLevel": "debug",
    "experimentWorkingDirectory": "/work",
    "tunerGpuIndices": [0, 2],
    "assessor": {"name": "Medianstop", "classArgs": {"start_step": 2}},
    "tuner": {"className": "mine.Tuner", "codeDirectory": "/mine", "classArgs": {"a": [1]}},
    "trainingService": [{"platform": "local", "useActiveGpu": False}, {"platform": "remote"}],
    "objectives": [{"metric": "loss", "mode": "minimize"}],
    "constraints": [{"metric": "size", "max": 3.5}],
    "tags": {"team": "a"},
    "modelGraph": {"graphs": [{"name": "Net", "nodes": [], "edges": [[0, 1]]}], "cut": False},
    "seed": 7,
}


def test_configuration_survives_a_round_trip() -> None:
    assert config_to_json(config_from_json(FULL)) == FULL


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"trialComand": "x"}, "trialComand"),
        ({"trialCommand": None}, "trialCommand"),
        ({"trialConcurrency": "many"}, "trialConcurrency"),
        ({"trialConcurrency": 2**40}, "trialConcurrency"),
        ({"trialCodeDirectory": "code"}, "trialCodeDirectory"),
        ({"maxTrialDuration": "5w"}, "maxTrialDuration"),
        ({"maxTrialDuration": -1}, "maxTrialDuration"),
        ({"tuner": {"name": "TPE", "className": "a.B"}}, "tuner"),
        ({"tuner": {"name": "TPE", "clasArgs": {}}}, "tuner.clasArgs"),
        ({"tuner": 3}, "tuner"),
        ({"trainingService": {"plattform": "local"}}, "trainingService.platform"),
        ({"objectives": [{"mode": "sideways"}]}, "objectives.mode"),
        ({"constraints": [{"metric": "a", "max": "b"}]}, "constraints.max"),
        ({"tunerGpuIndices": "0,2"}, "tunerGpuIndices"),
        ({"modelGraph": []}, "modelGraph"),
        ({"useAnnotation": True, "searchSpace": None}, "useAnnotation"),
    ],
)
def test_wrong_fields_are_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        config_from_json(FULL | change)

    assert caught.value.field == field


def test_each_configuration_has_its_own_graph() -> None:
    graphs = [{"graphs": [], "cut": True}, {"graphs": [], "cut": False}]

    found = [config_to_json(config_from_json(FULL | {"modelGraph": one})) for one in graphs]

    assert [one["modelGraph"] for one in found] == graphs


@pytest.mark.claim("platform", 84)
def test_secrets_are_masked_at_any_depth_in_both_spellings() -> None:
    data: dict[str, Any] = {
        "password": "a",
        "machines": [{"access_key_secret": "b", "host": "h"}],
        "stores": ["redis://:hush@host", "redis://host"],
        "token": None,
    }

    assert mask_secrets(data) == {
        "stores": [MASK, "redis://host"],
        "password": MASK,
        "machines": [{"access_key_secret": MASK, "host": "h"}],
        "token": None,
    }


def test_words_of_a_command_are_masked_after_their_options() -> None:
    words = ["train", "--api-key", "abc", "--max_tokens", "5", "--token", "--x", "-p", "y", "--pwd"]

    assert mask_secrets([*words, ["z"]]) == [*words[:2], MASK, *words[3:], MASK]


def test_variables_of_pods_are_masked_by_their_names() -> None:
    mode, reference = {"name": "MODE", "value": "x"}, {"name": "TOKEN", "valueFrom": {"key": "k"}}

    assert mask_secrets([{"name": "WANDB_API_KEY", "value": "x"}, mode, reference]) == [
        {"name": "WANDB_API_KEY", "value": MASK},
        mode,
        reference,
    ]


def test_direction_comes_from_the_objective_then_the_algorithm_then_the_default() -> None:
    config = config_pb2.ExperimentConfig()
    assert optimize_mode(config) == "maximize"

    config.tuner.class_args.CopyFrom(to_value({"optimize_mode": "minimize"}))
    assert optimize_mode(config) == "minimize"

    config.objectives.add(metric="default", mode=metric_pb2.OPTIMIZE_MODE_MAXIMIZE)
    assert optimize_mode(config) == "maximize"


def test_exploration_comes_back_as_it_was_written() -> None:
    exploration = {
        "documentSha256": "0" * 64,
        "documentBytes": 12,
        "strategy": "Random",
        "evaluator": "FunctionalEvaluator",
        "modelFormat": "simplified",
    }

    config = config_from_json({"trialCodeDirectory": "/code", "nas": exploration})

    assert config_to_json(config)["nas"] == exploration


@pytest.mark.parametrize(
    ("exploration", "field"),
    [
        ({"space": 1}, "nas.space"),
        ({"documentBytes": "1"}, "nas.documentBytes"),
        ({"documentBytes": -1}, "nas.documentBytes"),
        ({"documentBytes": 2**70}, "nas.documentBytes"),
        ({"strategy": {"name": "Random"}}, "nas.strategy"),
        ({"strategy": "\ud800"}, "nas.strategy"),
    ],
)
def test_exploration_with_a_wrong_field_is_refused(exploration: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        config_from_json({"trialCodeDirectory": "/code", "nas": exploration})

    assert refusal.value.field == field
