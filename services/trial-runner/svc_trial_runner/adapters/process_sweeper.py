"""Killer of processes that an earlier agent has left, and of no others."""

import os
import signal
from typing import Final

from svc_trial_runner.adapters.process_table import (
    ProcessEntry,
    all_processes,
    signal_exactly,
    token_of,
)
from svc_trial_runner.domain.claims import JournalState, ProcessIdentity

_LOOKS_LIMIT: Final = 20
"""Against a process that forks faster than it is found."""


class ProcSweeper:
    """Killer of an earlier agent's processes, found in /proc by leader, group or token.

    A process belongs to a trial if it is the recorded leader (number and start time), a member of
    the leader's group or session that is not older, or was executed with the trial's token in its
    environment. The journal itself drops processes of an earlier boot.

    A look at all processes misses one that is forked meanwhile, and the environment of one that is
    just being executed. So it is repeated until it finds no further one.
    """

    def sweep(self, state: JournalState) -> int:
        """Kill processes of a journal's claims and servers, by leader or token; return a count."""
        leaders = [claim.leader for claim in state.claims.values() if claim.leader is not None]
        leaders += state.servers
        tokens = {claim.token.encode() for claim in state.claims.values()}
        if not leaders and not tokens:
            return 0
        killed = 0
        known: set[ProcessIdentity] = set()
        for _ in range(_LOOKS_LIMIT):
            # In the order of the look: a parent that sees its child killed may go on otherwise.
            found = [ProcessIdentity(one.pid, one.start_time) for one in _found(leaders, tokens)]
            fresh = [one for one in found if one not in known]
            if not fresh:
                break
            killed += sum(signal_exactly(one, signal.SIGKILL) for one in fresh)
            known.update(fresh)
        return killed


def _found(leaders: list[ProcessIdentity], tokens: set[bytes]) -> list[ProcessEntry]:
    """Return the running processes that a recorded leader or a trial's token identifies."""
    processes = [entry for entry in all_processes() if entry.pid != os.getpid()]
    victims = _members(leaders, processes)
    for entry in processes:
        if entry.pid not in victims and token_of(entry.pid) in tokens:
            victims[entry.pid] = entry
    return list(victims.values())


def _members(
    leaders: list[ProcessIdentity], processes: list[ProcessEntry]
) -> dict[int, ProcessEntry]:
    """Return, by process id, recorded leaders and later members of their groups; no reused ids."""
    by_pid = {entry.pid: entry for entry in processes}
    victims: dict[int, ProcessEntry] = {}
    for leader in leaders:
        now = by_pid.get(leader.pid)
        if now is not None and now.start_time != leader.start_time:
            continue  # the number belongs to another process, and with it the group
        for entry in processes:
            related = leader.pid in {entry.pid, entry.group, entry.session}
            if related and entry.start_time >= leader.start_time:
                victims[entry.pid] = entry
    return victims
