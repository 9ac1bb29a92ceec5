"""Defaults of the events of a pool."""

from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.domain.pool_events import (
    ActionFailed,
    ListAgents,
    PresenceReceived,
    StateRestored,
)


def test_first_state_of_a_pool_counts_no_time_and_was_not_cleaned() -> None:
    restored = StateRestored((), 0)

    assert (restored.cleaned, restored.log_sequence, restored.ended_agent_s) == (False, 0, 0.0)


def test_failed_action_may_be_tried_again_unless_the_event_says_otherwise() -> None:
    assert not ActionFailed("slurm", ListAgents(), "away").permanent


def test_agent_of_an_older_version_stays_and_has_no_uploads() -> None:
    presence = PresenceReceived(AgentName("0123abcd", "gpus", 1), 2)

    assert (presence.draining, presence.leaving, presence.slots) == (False, False, None)
    assert (presence.uploads, presence.running_s) == (0, 0.0)
