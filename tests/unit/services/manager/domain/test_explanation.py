import pytest

from svc_manager.domain.explanation import ago, count, trial_text
from svc_manager.domain.reports import Started
from tests.unit.services.manager.building import Lab, exited, lost, waits_for_gpus


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (-5, "0 s"),
        (999, "0 s"),
        (4_000, "4 s"),
        (200_000, "3 min 20 s"),
        (7_500_000, "2 h 5 min"),
    ],
)
def test_durations_are_written_with_their_two_largest_units(duration_ms: int, text: str) -> None:
    assert ago(duration_ms) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 trials"), (1, "1 trial"), (2, "2 trials")])
def test_a_count_agrees_with_its_noun(number: int, text: str) -> None:
    assert count(number, "trial") == text


def test_a_running_trial_has_no_reason() -> None:
    assert trial_text(Lab().running()) == ""


def test_a_trial_that_waits_for_its_agent_has_the_delay_as_reason() -> None:
    lab = Lab()
    trial = lab.waiting()

    lab.report(trial, 0, waits_for_gpus(2))

    assert trial_text(trial) == "waiting for 2 GPUs"


def test_a_trial_that_waits_for_another_attempt_has_the_loss_as_reason() -> None:
    lab = Lab()
    trial = lab.running()

    lab.report(trial, 1, lost("power cut"))
    after_loss = trial_text(trial)
    lab.report(trial, 0, Started(1), claim="c2")

    assert after_loss == "power cut"
    assert trial_text(trial) == ""


def test_an_ended_trial_has_its_end_as_reason() -> None:
    lab = Lab()
    trial = lab.running()

    lab.report(trial, 1, exited(3, detail="boom"))

    assert trial_text(trial) == "exit code 3: boom"
