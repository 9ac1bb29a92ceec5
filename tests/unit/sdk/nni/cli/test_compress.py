"""`nnictl compress` on a manager in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nni.cli.main import DONE, FAILED, REFUSED, main
from nni_wire.values import to_value
from tests.support.compression_job import job_of
from tests.support.compression_log import (
    ERROR,
    archive_of,
    changed,
    created,
    step_events,
)
from tests.support.compression_log import FAILED as TRIAL_FAILED
from tests.support.in_memory_manager import STOPPED, InMemoryManager

JOB = "abcd1234"


@pytest.fixture
def failed(manager: InMemoryManager) -> InMemoryManager:
    """Return a manager with a job whose second step failed."""
    digest, content = archive_of({"step.json": b"{}"})
    manager.blobs[f"sha256/{digest}"] = content
    experiment = manager.add_experiment(JOB)
    experiment.config.compression.job.CopyFrom(to_value(job_of(2, speedup=False)))
    result = {"default": 0.25, "parameters": 70}
    manager.events[JOB] = [
        created(job_of(2, speedup=False)),
        *step_events(1, "t0001", result, checkpoint=digest),
        *step_events(2, "t0002", state=TRIAL_FAILED),
        changed(ERROR, "step 2 did not succeed"),
    ]
    return manager


def test_status_shows_each_step_and_what_went_wrong(
    failed: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compress", "status", "abcd"]) == DONE

    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "Job abcd1234 (halved): ERROR, 1 of 2 steps"
    assert lines[2].split() == ["1", "prune", "SUCCEEDED", "0.25", "70", "-", "t0001"]
    assert lines[3].split()[:3] == ["2", "prune", "FAILED"]
    assert "ERROR: step 2 did not succeed" in shown.err


def test_following_a_job_that_failed_ends_with_an_error(
    failed: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compress", "status", JOB, "--follow"]) == FAILED

    assert "step 1 (prune): SUCCEEDED, metric 0.25" in capsys.readouterr().out


def test_status_and_list_can_be_printed_as_json(
    failed: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compress", "status", JOB, "--json"]) == DONE
    one = json.loads(capsys.readouterr().out)
    assert main(["compress", "list", "--json"]) == DONE

    assert json.loads(capsys.readouterr().out) == [one]
    assert (one["id"], one["done"], one["complete"]) == (JOB, 1, False)


def test_list_shows_jobs_only(failed: InMemoryManager, capsys: pytest.CaptureFixture[str]) -> None:
    failed.add_experiment("other123")

    assert main(["compress", "list"]) == DONE

    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split() for row in rows] == [
        [JOB, "halved", "ERROR", "TaylorPruner", "1", "of", "2"]
    ]


def test_files_of_a_step_are_downloaded(
    failed: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compress", "get", JOB, str(tmp_path / "out")]) == DONE

    assert (tmp_path / "out" / "step.json").exists()
    assert "step.json" in capsys.readouterr().out
    assert main(["compress", "get", JOB, str(tmp_path / "out"), "--step", "2"]) == FAILED


def test_job_is_stopped_and_goes_on(failed: InMemoryManager) -> None:
    assert main(["compress", "cancel", JOB]) == DONE
    assert failed.known[JOB].state in STOPPED

    assert main(["compress", "resume", JOB]) == DONE
    assert failed.known[JOB].state not in STOPPED


def test_submission_names_what_is_wrong_with_the_file(
    manager: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "job.json"
    assert main(["compress", "submit", "--job", str(path)]) == REFUSED
    assert "--job cannot be read" in capsys.readouterr().err

    path.write_text("[]")
    assert main(["compress", "submit", "--job", str(path)]) == REFUSED
    assert "--job must hold a JSON object" in capsys.readouterr().err

    path.write_text(json.dumps({**job_of(1), "seed": -1}))
    assert main(["compress", "submit", "--job", str(path)]) == REFUSED
    assert "seed must be an integer" in capsys.readouterr().err
    assert manager.created == []


def test_submitted_job_is_named(
    manager: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job_of(1)))

    assert main(["compress", "submit", "-j", str(path), "-c", str(tmp_path)]) == DONE

    assert "nnictl compress status new00001 --follow" in capsys.readouterr().out
