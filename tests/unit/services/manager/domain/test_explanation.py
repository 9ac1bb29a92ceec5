import pytest

from nni_proto.trial.v1 import trial_service_pb2
from svc_manager.domain.explanation import (
    AgentFacts,
    Explanation,
    PoolFacts,
    ReasonKind,
    TrialOutcome,
    ago,
    count,
    trial_text,
)
from svc_manager.domain.reports import Started
from tests.unit.services.manager.building import Lab, exited, lost, waits_for_gpus


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (-5_000, "0 s"),
        (999, "0 s"),
        (4_000, "4 s"),
        (200_000, "3 min 20 s"),
        (7_500_000, "2 h 5 min"),
        (59_999, "59 s"),
        (60_000, "1 min 0 s"),
        (3_599_000, "59 min 59 s"),
        (3_600_000, "1 h 0 min"),
        (180_000_000, "50 h 0 min"),
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


def test_numbers_of_reasons_and_outcomes_are_those_of_the_contract() -> None:
    kinds = {f"REASON_KIND_{kind.name}": kind.value for kind in ReasonKind}
    outcomes = {f"VERDICT_{outcome.name}": outcome.value for outcome in TrialOutcome}

    assert kinds | {"REASON_KIND_UNSPECIFIED": 0} == dict(trial_service_pb2.ReasonKind.items())
    assert outcomes | {"VERDICT_UNSPECIFIED": 0} == dict(trial_service_pb2.Verdict.items())


def test_facts_that_are_not_known_explain_nothing() -> None:
    agent = AgentFacts("r1", "local", 0.0, silent=False, draining=False, held_count=0)
    explanation = Explanation("", None, TrialOutcome.NOT_CREATED, "")

    assert (agent.holds, agent.wait) == (False, None)
    assert (PoolFacts().coming_count, PoolFacts().reason) == (0, "")
    assert (explanation.signal, explanation.exit_code) == (0, None)


def test_last_loss_is_the_reason_of_a_trial_that_was_lost_twice() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, lost("power cut"))
    lab.report(trial, 0, Started(1), claim="c2")

    lab.report(trial, 1, lost("disk failed"), claim="c2")

    assert trial_text(trial) == "disk failed"
