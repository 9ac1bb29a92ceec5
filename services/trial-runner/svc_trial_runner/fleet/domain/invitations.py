"""Invitations to a pool, machines that have enrolled, and who may enrol."""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from svc_common.errors import PermissionDeniedError, ResourceExhaustedError

REPETITIONS_ALLOWED: Final = 10
"""Enrolments of a machine that is known, within the window."""
REPETITION_WINDOW_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Invitation:
    """Permission for some machines to enrol in a pool, until an instant."""

    id: str
    sha256: str
    """Hash of the secret of its word."""
    use_limit: int
    """Machines that may enrol."""
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class JoinedMachine:
    """Machine that has enrolled in a pool, and the number of its agent."""

    machine: str
    """Hash of the id that the machine has drawn."""
    number: int
    """In the agent's name; that of a machine stays the same."""
    slots: int
    host_name: str
    invitation_id: str
    ended: bool = False
    """True: its agent is over. The record stays: it counts as a use of the invitation."""


def admit(
    pool: str,
    invitations: Iterable[Invitation],
    machines: Collection[JoinedMachine],
    sha256: str,
    machine: str,
    now: datetime,
    expired: Collection[str] = (),
) -> Invitation:
    """Return the invitation by which a machine may enrol; raise PermissionDeniedError if none.

    A machine may enrol again by an invitation that is valid, without another use of it.

    Args:
        pool: whose invitations these are.
        invitations: of the pool.
        machines: that have enrolled in the pool.
        sha256: hash of the secret that the machine has sent.
        machine: hash of the machine's id.
        now: present time, aware.
        expired: ids of invitations that are known to have expired, whatever the time is.

    Raises:
        PermissionDeniedError: the secret is unknown, has expired or is used up.
    """
    found = next((one for one in invitations if one.sha256 == sha256), None)
    if found is None:
        raise PermissionDeniedError(
            f"this word is no valid invitation to pool {pool}: it is wrong, revoked, or of another "
            "pool"
        )
    if now >= found.expires_at or found.id in expired:
        raise PermissionDeniedError(
            f"this word was valid until {found.expires_at:%Y-%m-%d %H:%M} UTC"
        )
    users = {one.machine for one in machines if one.invitation_id == found.id}
    if machine not in users and len(users) >= found.use_limit:
        raise PermissionDeniedError(
            f"this word was for {found.use_limit} machines, and so many have used it"
        )
    return found


def machine_of(machines: Iterable[JoinedMachine], machine: str) -> JoinedMachine | None:
    """Return the record of a machine; None: it has not enrolled."""
    return next((one for one in machines if one.machine == machine), None)


class RepetitionLimit:
    """Rate limit of enrolments that known machines repeat: 10 in 10 min each; time is passed in.

    Each one revokes credentials and makes others at the bus, and a machine needs no other use of
    its invitation for it.
    """

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}
        """Of the last repetitions, by machine; machines are limited by their invitations."""

    def check(self, machine: str, now_s: float) -> None:
        """Count a repeated enrolment of a machine; raise if there were too many.

        Args:
            machine: hash of the machine's id.
            now_s: monotonic time.

        Raises:
            ResourceExhaustedError: too many; the message says how long to wait.
        """
        times = self._times.setdefault(machine, deque(maxlen=REPETITIONS_ALLOWED))
        if len(times) == REPETITIONS_ALLOWED and now_s < times[0] + REPETITION_WINDOW_S:
            wait_s = times[0] + REPETITION_WINDOW_S - now_s
            raise ResourceExhaustedError(
                f"this machine has enrolled {REPETITIONS_ALLOWED} times again within "
                f"{REPETITION_WINDOW_S / 60:g} min; try again in {wait_s:.0f} s"
            )
        times.append(now_s)
