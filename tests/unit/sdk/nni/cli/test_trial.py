import json

import pytest

from nni.cli.main import DONE, FAILED, REFUSED, main
from nni_proto.trial.v1 import cause_pb2, trial_pb2
from nni_wire.values import from_value, to_value
from tests.support.in_memory_manager import InMemoryManager


@pytest.fixture
def running(manager: InMemoryManager) -> InMemoryManager:
    manager.add_experiment("abcd1234")
    manager.add_trial("abcd1234", "low00", result=0.25)
    manager.add_trial("abcd1234", "high0", result=0.75)
    manager.add_trial("abcd1234", "live0", state=trial_pb2.TRIAL_STATE_RUNNING)
    return manager


def test_list_has_all_trials_in_order_of_creation(
    running: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trial", "ls", "--json"]) == DONE

    records = json.loads(capsys.readouterr().out)
    assert [record["id"] for record in records] == ["low00", "high0", "live0"]


@pytest.mark.parametrize(("option", "expected"), [("--head", "high0"), ("--tail", "low00")])
def test_head_and_tail_choose_by_metric(
    option: str, expected: str, running: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trial", "ls", option, "1", "--json"]) == DONE

    assert [record["id"] for record in json.loads(capsys.readouterr().out)] == [expected]


def test_head_and_tail_exclude_each_other(running: InMemoryManager) -> None:
    assert main(["trial", "ls", "--head", "1", "--tail", "1"]) == REFUSED


def test_table_shows_the_default_of_a_metric_and_the_parameters(
    running: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    running.add_trial("abcd1234", "both0", result={"default": 0.5, "loss": 7})
    running.add_trial("abcd1234", "odd00", result={"loss": 7})

    assert main(["trial", "ls"]) == DONE

    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert "0.5" in lines["both0"]
    assert "loss" not in lines["both0"]
    assert '{"loss": 7}' in lines["odd00"]
    assert '{"x": 3}' in lines["both0"]


def test_list_says_why_a_trial_waits(
    running: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    running.add_trial("abcd1234", "held0", state=trial_pb2.TRIAL_STATE_WAITING)
    held = running.trials["abcd1234"][-1]
    held.reason = "waiting for its environment (start failed once): No space left on device"
    held.wait.cause = cause_pb2.WAIT_CAUSE_ENVIRONMENT

    assert main(["trial", "ls", "--json"]) == DONE
    records = json.loads(capsys.readouterr().out)
    assert main(["trial", "ls"]) == DONE
    lines = capsys.readouterr().out.splitlines()

    assert records[-1]["waitCause"] == "ENVIRONMENT"
    assert records[-1]["message"] == held.reason
    assert "waitCause" not in records[0]
    assert lines[-1].endswith(held.reason)


def test_kill_cancels_a_live_trial(running: InMemoryManager) -> None:
    assert main(["trial", "kill", "--trial_id", "live0"]) == DONE

    assert running.trials["abcd1234"][2].state == trial_pb2.TRIAL_STATE_USER_CANCELED


@pytest.mark.parametrize("trial", ["low00", "nope0"])
def test_kill_of_a_trial_that_does_not_run_is_an_error(
    trial: str, running: InMemoryManager
) -> None:
    assert main(["trial", "kill", "-T", trial]) == FAILED


def test_add_runs_parameters_of_the_user(
    running: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trial", "add", "-P", '{"x": 9}', "--json"]) == DONE

    assert json.loads(capsys.readouterr().out) == {"parameterId": 3}
    added = running.trials["abcd1234"][-1]
    assert from_value(added.parameters) == {"x": 9}
    assert added.source == trial_pb2.PARAMETER_SOURCE_CUSTOMIZED


def test_parameters_that_are_no_json_are_refused(
    running: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trial", "add", "-P", "{x: 9}"]) == REFUSED

    assert "--parameters must be JSON" in capsys.readouterr().err


def test_parameters_outside_the_search_space_are_refused_unless_asked_for(
    running: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    config = running.known["abcd1234"].config
    config.tuner.name = "Random"
    config.search_space.CopyFrom(to_value({"x": {"_type": "uniform", "_value": [0, 1]}}))

    assert main(["trial", "add", "-P", '{"x": 9}']) == REFUSED
    shown = capsys.readouterr().err
    assert "--parameters must lie in the search space: parameter 'x'" in shown
    assert "--no-check" in shown

    assert main(["trial", "add", "-P", '{"x": 9}', "--no-check"]) == DONE
    assert main(["trial", "add", "-P", '{"x": 0.9}']) == DONE
    assert len(running.trials["abcd1234"]) == 5
