"""Progress of a job: the report that is due after each event."""

from __future__ import annotations

import pytest

from nni.compression.job.field_checks import JobError
from nni.compression.job.steps import Step
from svc_compressor.domain import events, reports
from svc_compressor.domain.job_progress import JobProgress
from tests.support.compression_job import job_of

FIRST, SECOND, LAST = Step(1, "prune"), Step(2, "prune"), Step(3, "speedup")


def started(job: object = None) -> JobProgress:
    """Return the progress of a job that was started and announced."""
    progress = JobProgress()
    feed(progress, events.JobCreated(job_of() if job is None else job), start())
    assert progress.next_report() == reports.Started(1)
    return progress


def start(generation: int = 1) -> events.AlgorithmRequested:
    return events.AlgorithmRequested(generation, service="compressor")


def feed(progress: JobProgress, *happened: events.Event) -> None:
    for event in happened:
        progress.feed(event)


def run(progress: JobProgress, number: int, state: str = "SUCCEEDED") -> None:
    """Request, generate, schedule and end the step with this parameter id."""
    feed(
        progress,
        events.TrialsRequested(f"r{number}", (number,)),
        events.ParametersGenerated(f"r{number}", (number,), exhausted=False),
        events.TrialScheduled(f"t{number}", number),
        events.TrialEnded(f"t{number}", state),
    )


def test_each_request_gets_the_step_after_those_that_succeeded() -> None:
    progress = started()
    steps = []
    for number in range(3):
        feed(progress, events.TrialsRequested("asked", (number,)))
        report = progress.next_report()
        assert isinstance(report, reports.StepGenerated)
        steps.append(report.step)
        progress.feed(events.ParametersGenerated("asked", (number,), exhausted=False))
        feed(progress, events.TrialScheduled(f"t{number}", number))
        assert progress.next_report() is None
        progress.feed(events.TrialEnded(f"t{number}", "SUCCEEDED"))

    assert steps == [FIRST, SECOND, LAST]


def test_request_after_the_last_step_is_answered_with_completion() -> None:
    progress = started(job_of(1, speedup=False))
    run(progress, 0)

    progress.feed(events.TrialsRequested("more", (1,)))

    assert progress.next_report() == reports.Completed("more")
    progress.feed(events.ParametersGenerated("more", (), exhausted=True))
    assert progress.next_report() is None


def test_nothing_is_generated_while_a_step_waits_for_its_trial_or_runs() -> None:
    progress = started()
    feed(
        progress,
        events.TrialsRequested("a", (0,)),
        events.ParametersGenerated("a", (0,), exhausted=False),
        events.TrialsRequested("b", (1,)),
    )
    assert progress.next_report() is None

    progress.feed(events.TrialScheduled("t", 0))

    assert progress.next_report() is None
    progress.feed(events.TrialEnded("t", "SUCCEEDED"))
    assert progress.next_report() == reports.StepGenerated("b", 1, SECOND)


def test_several_parameters_of_one_request_become_one_step_at_a_time() -> None:
    progress = started()
    progress.feed(events.TrialsRequested("a", (0, 1)))
    assert progress.next_report() == reports.StepGenerated("a", 0, FIRST, deferred=1)

    feed(
        progress,
        events.ParametersGenerated("a", (0,), exhausted=False),
        events.TrialScheduled("t", 0),
        events.TrialEnded("t", "SUCCEEDED"),
    )

    assert progress.next_report() == reports.StepGenerated("", 1, SECOND)


def test_deferred_parameters_come_oldest_first() -> None:
    progress = started()
    progress.feed(events.TrialsRequested("a", (0, 1, 2)))
    assert progress.next_report() == reports.StepGenerated("a", 0, FIRST, deferred=2)

    feed(
        progress,
        events.ParametersGenerated("a", (0,), exhausted=False),
        events.TrialScheduled("t", 0),
        events.TrialEnded("t", "SUCCEEDED"),
    )

    assert progress.next_report() == reports.StepGenerated("", 1, SECOND)


def test_deferred_parameters_of_a_complete_job_never_come() -> None:
    progress = started(job_of(1, speedup=False))
    feed(
        progress,
        events.TrialsRequested("a", (0, 1)),
        events.ParametersGenerated("a", (0,), exhausted=False),
        events.TrialScheduled("t", 0),
        events.TrialEnded("t", "SUCCEEDED"),
    )

    assert progress.next_report() == reports.Completed("")


@pytest.mark.parametrize("state", ["FAILED", "USER_CANCELED", "SYS_CANCELED"])
def test_step_that_does_not_succeed_ends_the_job_with_its_reason(state: str) -> None:
    progress = started()
    run(progress, 0, state)

    report = progress.next_report()

    assert isinstance(report, reports.GaveUp)
    assert "step 1 (prune) did not succeed: trial t0" in report.reason
    assert state in report.reason


def test_resumed_job_runs_the_failed_step_again() -> None:
    progress = started()
    run(progress, 0)
    run(progress, 1, "FAILED")
    feed(progress, events.ExperimentEnded())
    assert progress.next_report() is None

    feed(progress, start(2), events.TrialsRequested("again", (2,)))

    assert progress.next_report() == reports.Started(2)
    assert progress.next_report() == reports.StepGenerated("again", 2, SECOND)


def test_requests_and_parameters_without_a_trial_end_with_their_generation() -> None:
    progress = started()
    feed(
        progress,
        events.TrialsRequested("a", (0,)),
        events.ParametersGenerated("a", (0,), exhausted=False),
        events.TrialsRequested("b", (1,)),
        events.ExperimentEnded(),
        start(2),
    )

    assert progress.next_report() == reports.Started(2)
    assert progress.next_report() is None


def test_resumed_job_answers_requests_of_its_own_generation_only() -> None:
    progress = started()
    feed(
        progress,
        events.TrialsRequested("a", (0, 1)),
        events.ParametersGenerated("a", (0,), exhausted=False),
        events.ExperimentEnded(),
        start(2),
    )
    assert progress.next_report() == reports.Started(2)
    assert progress.next_report() is None

    progress.feed(events.TrialsRequested("b", (5,)))

    assert progress.next_report() == reports.StepGenerated("b", 5, FIRST)


def test_deferred_parameter_becomes_one_step_only() -> None:
    progress = started()
    run(progress, 0)
    feed(
        progress,
        events.TrialsRequested("a", (1, 2)),
        events.ParametersGenerated("a", (1,), exhausted=False),
        events.TrialScheduled("t1", 1),
        events.TrialEnded("t1", "SUCCEEDED"),
        events.ParametersGenerated("", (2,), exhausted=False),
        events.TrialScheduled("t2", 2),
        events.TrialEnded("t2", "SUCCEEDED"),
    )

    assert progress.next_report() is None
    assert progress.done == LAST.number


def test_job_that_breaks_a_rule_is_given_up_in_every_generation() -> None:
    progress = JobProgress()
    feed(progress, events.JobCreated({"model": {}}), start())
    given_up = progress.next_report()

    feed(progress, events.ExperimentEnded(), start(2))

    assert given_up == reports.GaveUp(1, "evaluator is missing")
    assert progress.next_report() == reports.GaveUp(2, "evaluator is missing")


def test_trials_of_users_count_for_no_step() -> None:
    progress = started()

    feed(progress, events.TrialScheduled("mine", 7), events.TrialEnded("mine", "FAILED"))
    feed(progress, events.TrialsRequested("a", (0,)))

    assert progress.next_report() == reports.StepGenerated("a", 0, FIRST)


def test_same_log_gives_the_same_report_after_any_restart() -> None:
    log: list[events.Event] = [events.JobCreated(job_of()), start()]
    for number in range(3):
        log += [
            events.TrialsRequested(f"r{number}", (number,)),
            events.ParametersGenerated(f"r{number}", (number,), exhausted=False),
            events.TrialScheduled(f"t{number}", number),
            events.TrialEnded(f"t{number}", "SUCCEEDED"),
        ]
    steady = JobProgress()
    for length, event in enumerate(log, 1):
        steady.feed(event)
        restarted = JobProgress()
        feed(restarted, *log[:length])

        assert due(restarted) == due(steady)


def due(progress: JobProgress) -> reports.Report | None:
    report = progress.next_report()
    return progress.next_report() if isinstance(report, reports.Started) else report


def test_parameters_that_an_exhausted_answer_withdraws_are_not_generated() -> None:
    progress = started()
    feed(
        progress,
        events.TrialsRequested("a", (0, 1)),
        events.ParametersGenerated("a", (), exhausted=True),
    )

    assert progress.next_report() is None


def test_oldest_request_is_answered_first() -> None:
    progress = started()

    feed(progress, events.TrialsRequested("a", (4,)), events.TrialsRequested("b", (5,)))

    assert progress.next_report() == reports.StepGenerated("a", 4, FIRST, deferred=0)


def test_job_is_unknown_and_reports_nothing_before_its_first_start() -> None:
    progress = JobProgress()
    with pytest.raises(JobError, match="is unknown before its creation"):
        progress.job  # noqa: B018 - the property raises

    feed(progress, events.JobCreated(job_of()), events.TrialsRequested("a", (0,)))

    assert progress.next_report() is None
    assert (progress.generation, progress.wanted, progress.done) == (0, False, 0)
