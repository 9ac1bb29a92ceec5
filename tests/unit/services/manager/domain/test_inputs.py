"""Inputs and the decisions that handle them."""

from typing import get_args

from svc_manager.domain import decide, inputs


def test_every_notification_has_a_decision() -> None:
    assert set(decide._NOTIFICATIONS) == set(get_args(inputs.Notification))


def test_commands_and_notifications_are_distinct() -> None:
    assert not set(get_args(inputs.Command)) & set(get_args(inputs.Notification))
