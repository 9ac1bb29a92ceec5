from svc_manager.converters.text_log import line_of
from svc_manager.domain import events
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.trial import TrialState


def test_an_error_of_the_experiment_is_an_error_line_with_its_reason() -> None:
    line = line_of(
        events.ExperimentStateChanged(ExperimentState.RUNNING, ExperimentState.ERROR, "it broke", 0)
    )

    assert line == ("ERROR", "NNIManager", "Experiment is ERROR (it broke)")


def test_a_failed_trial_is_a_warning_with_the_tail_of_its_stderr() -> None:
    line = line_of(events.TrialEnded("abcde", 1, TrialState.FAILED, 3, 0, "exit code 3: boom", 4))

    assert line == ("WARNING", "TrialDispatcher", "Trial abcde is FAILED: exit code 3: boom")


def test_an_update_names_what_changed() -> None:
    line = line_of(events.BudgetChanged(4, None, None))

    assert line == ("INFO", "NNIManager", "Update: trialConcurrency = 4")


def test_requests_that_were_recorded_need_no_line() -> None:
    assert line_of(events.RequestRecorded("q", "me", "Create")) is None
