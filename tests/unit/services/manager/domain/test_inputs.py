"""Inputs and the decisions that handle them."""

from typing import get_args

from svc_common.experiment_events.causes import LossCause, LossReason
from svc_manager.domain import events, inputs
from svc_manager.domain.decide import decide_notification
from svc_manager.domain.decision_round import Round
from svc_manager.domain.reports import Report, Started
from tests.unit.services.manager.building import Lab, generated

HELD = inputs.HeldAttempt("abcde", 1, "claim")
LOSS = LossReason(LossCause.AGENT_LEFT)
NOTIFICATIONS: list[inputs.Notification] = [
    Report("r1", "abcde", 1, 0, "claim", Started(1)),
    events.AlgorithmStarted(1, lookahead=False, assesses=False, provenance={}),
    generated("1-0", [0]),
    events.AlgorithmFailed("call", "Traceback", (1, 0), skipped=True),
    events.AlgorithmDiverged(0, b"", b""),
    events.AlgorithmWaits(1, "no room"),
    inputs.StopAdvice("abcde", ""),
    inputs.AlgorithmGaveUp(1, "KeyError"),
    inputs.AgentSeen("r1", (HELD,)),
    inputs.AgentOverdue("r1"),
    inputs.AgentRestarted("local", "boot"),
    inputs.AgentSilent("r1"),
    inputs.AgentGone("r1", LOSS),
    inputs.AttemptGone(HELD, LOSS),
    inputs.Tick(),
]


def test_every_notification_has_a_decision() -> None:
    lab = Lab()

    for notification in NOTIFICATIONS:
        decide_notification(Round(lab.experiment, lab.now_ms, lab.ids), notification)

    assert {type(one) for one in NOTIFICATIONS} == set(get_args(inputs.Notification))


def test_commands_and_notifications_are_distinct() -> None:
    assert not set(get_args(inputs.Command)) & set(get_args(inputs.Notification))
