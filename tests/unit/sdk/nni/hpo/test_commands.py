"""Commands of an advisor and the port that receives them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from nni.hpo import commands
from nni.hpo.commands import CommandType, send


class RecordingPort:
    def __init__(self) -> None:
        self.said: list[tuple[CommandType, Any]] = []

    def deliver(self, command: CommandType, data: Any) -> None:
        self.said.append((command, data))


@pytest.fixture
def port() -> Iterator[RecordingPort]:
    port = RecordingPort()
    commands.connect(port)
    yield port
    commands.connect(None)


def test_json_text_is_decoded(port: RecordingPort) -> None:
    trial = {"parameter_id": 1, "parameters": {"x": 0.5}}

    send(CommandType.NewTrialJob, json.dumps(trial))

    assert port.said == [(CommandType.NewTrialJob, trial)]


def test_values_pass_as_they_are(port: RecordingPort) -> None:
    send(CommandType.NoMoreTrialJobs, "")
    send(CommandType.NoMoreTrialJobs, None)

    assert port.said == [(CommandType.NoMoreTrialJobs, ""), (CommandType.NoMoreTrialJobs, None)]


@pytest.mark.parametrize("data", ["aB3dE", '"aB3dE"'])
def test_trial_to_kill_may_be_bare_or_json(port: RecordingPort, data: str) -> None:
    send(CommandType.KillTrialJob, data)

    assert port.said == [(CommandType.KillTrialJob, "aB3dE")]


@pytest.mark.parametrize("data", ["{}", '{"parameter_id": 1}', "[]", {"parameters": 1}])
def test_new_trial_needs_id_and_parameters(port: RecordingPort, data: object) -> None:
    with pytest.raises(ValueError, match="needs a dict with 'parameter_id' and 'parameters'"):
        send(CommandType.NewTrialJob, data)
    assert port.said == []


def test_without_a_host_it_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="no host is connected"):
        send(CommandType.Initialized, "")
