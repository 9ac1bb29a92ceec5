"""`nnictl nas` on a manager in this process."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from nni.cli.main import DONE, FAILED, main
from nni_proto.experiment.v1 import event_pb2, experiment_pb2
from tests.support.in_memory_manager import STOPPED, InMemoryManager

SEARCH = "abcd1234"


@pytest.fixture
def exploration(manager: InMemoryManager) -> InMemoryManager:
    """Return a manager with an exploration of three models, and another experiment."""
    manager.add_experiment("other123")
    experiment = manager.add_experiment(SEARCH, best_value=0.9)
    experiment.config.nas.strategy = "Random"
    experiment.config.nas.model_format = "simplified"
    experiment.config.trial_concurrency = 3
    experiment.trial_counts["SUCCEEDED"] = 3
    for number, result in enumerate((0.5, {"default": 0.9}, "no number")):
        parameters = {"sample": {"width": number}, "model": {}}
        manager.add_trial(SEARCH, f"t{number}", result=result, parameters=parameters)
    return manager


def test_list_shows_explorations_only(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nas", "list"]) == DONE

    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split() for row in rows if row.strip("-─ ")] == [
        [SEARCH, "tuning", "RUNNING", "Random", "3", "0.9"]
    ]


def test_list_and_show_can_be_printed_as_json(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nas", "list", "--json"]) == DONE
    (listed,) = json.loads(capsys.readouterr().out)
    assert main(["nas", "show", "abcd", "--json"]) == DONE

    assert json.loads(capsys.readouterr().out) == listed
    assert (listed["state"], listed["trials"]) == ("RUNNING", {"SUCCEEDED": 3})


def test_show_names_the_cause_of_an_error(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    exploration.known[SEARCH].errors.append("ImportError: no layer")

    assert main(["nas", "show", SEARCH]) == DONE

    shown = capsys.readouterr()
    assert "Exploration abcd1234 (tuning): RUNNING" in shown.out
    assert "ERROR: ImportError: no layer" in shown.err


def test_top_shows_the_best_models_first(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nas", "top", SEARCH, "--json"]) == DONE

    models = json.loads(capsys.readouterr().out)
    assert [(one["trial_id"], one["value"]) for one in models] == [("t1", 0.9), ("t0", 0.5)]
    assert models[0]["sample"] == {"width": 1}


def test_models_can_be_printed_as_csv(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nas", "top", SEARCH, "-n", "1", "--output", "csv"]) == DONE

    header, row = csv.reader(capsys.readouterr().out.splitlines())
    assert header == ["trial_id", "metric", "sample", "value"]
    assert row == ["t1", '{"default": 0.9}', '{"width": 1}', "0.9"]


def test_number_of_models_is_limited(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nas", "top", SEARCH, "-n", "1"]) == DONE

    shown = capsys.readouterr().out
    assert '{"width": 1}' in shown
    assert '{"width": 0}' not in shown


def test_pause_is_shown_and_ends_with_the_concurrency_of_before(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    created = event_pb2.ExperimentCreated(config=exploration.known[SEARCH].config)
    changed = event_pb2.BudgetChanged(trial_concurrency=0)
    exploration.events[SEARCH] = [
        event_pb2.Event(experiment_created=created),
        event_pb2.Event(budget_changed=changed),
    ]

    assert main(["nas", "pause", SEARCH]) == DONE
    assert main(["nas", "show", SEARCH]) == DONE
    paused = capsys.readouterr().out
    assert main(["nas", "resume", SEARCH]) == DONE

    assert "PAUSED" in paused
    assert exploration.known[SEARCH].config.trial_concurrency == 3


def test_running_exploration_cannot_be_resumed(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nas", "resume", SEARCH]) == FAILED

    assert "is RUNNING, not paused or stopped" in capsys.readouterr().err


def test_stopped_exploration_is_resumed_and_has_nothing_to_pause(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nas", "stop", SEARCH]) == DONE
    stopped = exploration.known[SEARCH].state
    assert main(["nas", "pause", SEARCH]) == FAILED
    assert main(["nas", "resume", SEARCH]) == DONE

    assert stopped in STOPPED
    assert "nothing to pause" in capsys.readouterr().err


def test_exploration_that_has_reached_its_limit_needs_a_larger_one(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    exploration.known[SEARCH].state = experiment_pb2.EXPERIMENT_STATE_DONE

    assert main(["nas", "pause", SEARCH]) == FAILED
    assert main(["nas", "resume", SEARCH]) == FAILED

    shown = capsys.readouterr().err
    assert "is DONE and starts no trials; nothing to pause" in shown
    assert f"nnictl update trialnum {SEARCH} --value N" in shown
    assert exploration.known[SEARCH].config.trial_concurrency == 3


def test_search_that_runs_alone_needs_no_id(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    del exploration.known["other123"]

    assert main(["nas", "show"]) == DONE

    assert SEARCH in capsys.readouterr().out


def test_other_experiment_is_no_exploration(
    exploration: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nas", "top", "other123"]) == FAILED

    assert "nnictl experiment show other123" in capsys.readouterr().err


def test_refused_search_names_the_rule_and_starts_nothing(
    manager: InMemoryManager,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    code = main(["nas", "create", "no_such_module:build"])

    assert code != DONE
    assert "cannot be imported" in capsys.readouterr().err
    assert manager.known == {}
