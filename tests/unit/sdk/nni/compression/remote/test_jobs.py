"""Client of jobs, on a manager in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni.compression.job import JobError
from nni.compression.remote import RemoteJob, list_jobs, submit_job
from nni.experiment.errors import NotFoundError, WrongStateError
from nni_wire.values import from_value, to_value
from tests.support.compression_job import job_of
from tests.support.compression_log import (
    DONE,
    RUNNING,
    archive_of,
    changed,
    created,
    step_events,
)
from tests.support.in_memory_manager import STOPPED, InMemoryManager

JOB = "abcd1234"


@pytest.fixture
def finished(manager: InMemoryManager) -> RemoteJob:
    """Return a job with one step, which has succeeded."""
    digest, content = archive_of({"step.json": b"{}"})
    manager.blobs[f"sha256/{digest}"] = content
    experiment = manager.add_experiment(JOB)
    experiment.config.compression.job.CopyFrom(to_value(job_of(1, speedup=False)))
    manager.events[JOB] = [
        created(job_of(1, speedup=False)),
        changed(RUNNING),
        *step_events(1, "t0001", {"default": 0.5}, checkpoint=digest),
        changed(DONE),
    ]
    return RemoteJob(JOB)


def test_job_is_submitted_with_its_code_directory(manager: InMemoryManager, tmp_path: Path) -> None:
    with submit_job(job_of(1), tmp_path, name="mine") as job:
        assert job.id == "new00001"

    config = manager.created[0].config
    assert from_value(config.compression.job) == job_of(1)
    assert (config.trial_code_directory, config.experiment_name) == (str(tmp_path), "mine")
    assert not config.HasField("search_space")


def test_description_is_checked_before_it_is_sent(manager: InMemoryManager, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="seed"):
        submit_job({**job_of(1), "seed": "x"}, tmp_path)

    assert manager.created == []


def test_status_and_all_its_changes_can_be_read(finished: RemoteJob) -> None:
    with finished:
        assert finished.status().complete
        assert finished.wait() == finished.status()
        assert [one.state for one in finished.follow()] == ["DONE"]


def test_changes_are_followed_until_the_end(manager: InMemoryManager, finished: RemoteJob) -> None:
    log = manager.events[JOB]
    manager.events[JOB] = log[:3]
    with finished:
        statuses = finished.follow()
        first = next(statuses)
        manager.events[JOB] = log

        states = [(one.state, one.steps[0].state) for one in statuses]

    assert (first.state, first.steps[0].state) == ("RUNNING", "WAITING")
    assert states == [
        ("RUNNING", "RUNNING"),
        ("RUNNING", "RUNNING"),  # its result
        ("RUNNING", "SUCCEEDED"),
        ("DONE", "SUCCEEDED"),
    ]


def test_files_of_a_step_are_fetched(finished: RemoteJob, tmp_path: Path) -> None:
    with finished:
        folder = finished.fetch(tmp_path / "out")

        assert (folder / "step.json").read_text() == "{}"
        with pytest.raises(WrongStateError, match="step 2"):
            finished.fetch(tmp_path, step=2)


def test_output_of_a_step_is_that_of_its_trial(
    manager: InMemoryManager, finished: RemoteJob
) -> None:
    with finished:
        assert isinstance(b"".join(finished.output()), bytes)
        with pytest.raises(WrongStateError, match="not started"):
            next(finished.output(2))


def test_experiment_with_a_tuner_is_no_job(manager: InMemoryManager, finished: RemoteJob) -> None:
    manager.add_experiment("other123")

    with RemoteJob("other123") as other, pytest.raises(NotFoundError, match="no compression job"):
        other.status()

    assert [job.id for job in list_jobs()] == [JOB]


def test_cancelled_job_is_stopped_and_resumed(
    manager: InMemoryManager, finished: RemoteJob
) -> None:
    with finished:
        finished.cancel()
        assert manager.known[JOB].state in STOPPED

        finished.resume()

    assert manager.known[JOB].state not in STOPPED
