import json

import pytest

from nni.cli.main import DONE, FAILED, main
from tests.support.in_memory_manager import InMemoryManager

PATH = "/api/v1/nni/experiments/abcd1234"


def test_importance_lists_shares_in_percent(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.documents[f"{PATH}/importance"] = {
        "metric": "loss",
        "trials": 30,
        "parameters": [{"name": "rate", "share": 0.75}],
        "interactions": 0.25,
    }

    assert main(["experiment", "importance", "--metric", "loss"]) == DONE

    shown = capsys.readouterr().out
    assert "rate" in shown
    assert "75.0 %" in shown
    assert "(several together)" in shown
    assert "Learnt from 30 trials; metric 'loss'." in shown
    assert manager.queries == ["metric=loss"]


def test_pareto_lists_the_front_and_what_is_left_out(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    point = {"trialJobId": "t0", "sequenceId": 3, "values": {"loss": 0.5}, "parameters": {"x": 1}}
    manager.documents[f"{PATH}/pareto"] = {
        "objectives": [{"metric": "loss", "mode": "minimize"}],
        "front": [point],
        "trials": 4,
        "infeasible": 2,
        "incomplete": 0,
    }

    assert main(["experiment", "pareto", "--objective", "loss:minimize"]) == DONE

    shown = capsys.readouterr().out
    assert '{"x": 1}' in shown
    assert "1 of 4 trials are on the front; left out: 2 infeasible." in shown
    assert manager.queries == ["objectives=loss%3Aminimize"]


@pytest.mark.parametrize("option", ["--json", "--output=json"])
@pytest.mark.parametrize("command", ["importance", "pareto"])
def test_json_is_the_document_of_the_manager(
    command: str, option: str, manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.documents[f"{PATH}/{command}"] = {"trials": 0}

    assert main(["experiment", command, "abcd", option]) == DONE

    assert json.loads(capsys.readouterr().out) == {"trials": 0}


def test_refusal_of_the_manager_is_an_error(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")

    assert main(["experiment", "importance"]) == FAILED

    assert "not found" in capsys.readouterr().err
