"""Tests of who may enrol in a pool."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from svc_common.errors import PermissionDeniedError, ResourceExhaustedError
from svc_trial_runner.fleet.domain.invitations import (
    Invitation,
    JoinedMachine,
    RepetitionLimit,
    admit,
    machine_of,
)

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
INVITATION = Invitation("id-1", "hash-1", 1, NOW + timedelta(hours=1))
MACHINE = JoinedMachine("machine-1", 7, 2, "host", "id-1")


def test_known_word_admits() -> None:
    assert admit("desks", [INVITATION], [], "hash-1", "machine-1", NOW) == INVITATION


def test_unknown_word_is_refused() -> None:
    with pytest.raises(PermissionDeniedError, match="no valid invitation to pool desks"):
        admit("desks", [INVITATION], [], "hash-2", "machine-1", NOW)


def test_word_is_refused_from_its_end_on() -> None:
    with pytest.raises(PermissionDeniedError, match="was valid until 2026-11-27 13:00 UTC"):
        admit("desks", [INVITATION], [], "hash-1", "machine-1", INVITATION.expires_at)


def test_word_that_is_used_up_is_refused_to_another_machine() -> None:
    with pytest.raises(PermissionDeniedError, match="for 1 machines"):
        admit("desks", [INVITATION], [MACHINE], "hash-1", "machine-2", NOW)


def test_ended_machine_counts_as_a_use() -> None:
    with pytest.raises(PermissionDeniedError, match="for 1 machines"):
        admit("desks", [INVITATION], [replace(MACHINE, ended=True)], "hash-1", "machine-2", NOW)


def test_machine_may_enrol_again_without_another_use() -> None:
    assert admit("desks", [INVITATION], [MACHINE], "hash-1", "machine-1", NOW) == INVITATION


def test_uses_of_another_invitation_do_not_count() -> None:
    other = replace(MACHINE, invitation_id="id-2")

    assert admit("desks", [INVITATION], [other], "hash-1", "machine-2", NOW) == INVITATION


def test_machine_is_found_by_the_hash_of_its_id() -> None:
    assert machine_of([MACHINE], "machine-1") == MACHINE
    assert machine_of([MACHINE], "machine-2") is None


def test_repetitions_are_limited_by_machine_within_the_window() -> None:
    limit = RepetitionLimit()
    for number in range(10):
        limit.check("machine-1", float(number))

    with pytest.raises(ResourceExhaustedError, match="try again in 590 s"):
        limit.check("machine-1", 10.0)
    limit.check("machine-2", 10.0)
    limit.check("machine-1", 600.0)
    with pytest.raises(ResourceExhaustedError, match="try again in 1 s"):
        limit.check("machine-1", 600.25)


def test_machine_that_has_enrolled_has_not_ended() -> None:
    assert not MACHINE.ended


def test_invitation_that_is_known_to_have_expired_admits_none_whatever_the_time() -> None:
    with pytest.raises(PermissionDeniedError, match="was valid until"):
        admit("desks", [INVITATION], [], "hash-1", "machine-1", NOW, ["id-1"])
