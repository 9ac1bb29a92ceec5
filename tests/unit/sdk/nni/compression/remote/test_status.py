"""Status of a job as a fold of its log."""

from __future__ import annotations

from nni.compression.remote.status import JobStatus, StatusFold
from nni_proto.experiment.v1 import config_pb2, event_pb2
from tests.support.compression_job import job_of
from tests.support.compression_log import (
    DONE,
    ERROR,
    FAILED,
    RUNNING,
    changed,
    created,
    step_events,
)


def status_of(*happened: event_pb2.Event) -> JobStatus:
    fold = StatusFold()
    for event in happened:
        fold.feed(event)
    status = fold.status
    assert status is not None
    return status


def test_new_job_has_all_its_steps_pending() -> None:
    status = status_of(created(job_of(2)))

    assert [(step.number, step.kind, step.state) for step in status.steps] == [
        (1, "prune", "PENDING"),
        (2, "prune", "PENDING"),
        (3, "speedup", "PENDING"),
    ]
    assert (status.id, status.name, status.algorithm) == ("abcd1234", "halved", "TaylorPruner")
    assert not status.complete


def test_results_and_checkpoints_are_those_of_the_last_trial_of_a_step() -> None:
    status = status_of(
        created(job_of(1, speedup=False)),
        changed(RUNNING),
        *step_events(1, "first", state=FAILED),
        changed(ERROR, "step 1 failed"),
        changed(RUNNING),
        *step_events(1, "second", {"default": 0.5, "parameters": 7}, checkpoint="ab"),
        changed(DONE),
    )

    (step,) = status.steps
    assert (step.state, step.trial_id, step.checkpoint) == ("SUCCEEDED", "second", "ab")
    assert step.result == {"default": 0.5, "parameters": 7}
    assert (status.state, status.message, status.done, status.complete) == ("DONE", "", 1, True)


def test_failure_has_its_reason() -> None:
    status = status_of(
        created(job_of(1)), *step_events(1, "t", state=FAILED), changed(ERROR, "it broke")
    )

    assert (status.state, status.message) == ("ERROR", "it broke")
    assert status.steps[0].state == "FAILED"


def test_running_step_is_seen_before_it_ends() -> None:
    *events, _ = step_events(1, "t")

    assert status_of(created(job_of(1)), events[0]).steps[0].state == "WAITING"
    assert status_of(created(job_of(1)), *events).steps[0].state == "RUNNING"


def test_trials_that_users_added_belong_to_no_step() -> None:
    status = status_of(created(job_of(1)), *step_events(99, "mine", {"default": 1}))

    assert [step.state for step in status.steps] == ["PENDING", "PENDING"]


def test_description_that_breaks_a_rule_has_no_steps() -> None:
    assert status_of(created({"model": 1})).steps == ()


def test_experiment_with_a_tuner_is_no_job() -> None:
    fold = StatusFold()
    config = config_pb2.ExperimentConfig()
    fold.feed(event_pb2.Event(experiment_created=event_pb2.ExperimentCreated(config=config)))

    assert fold.status is None
