"""Killer of processes that an earlier agent has left, and of no others."""

import os
import signal

from svc_trial_runner.adapters.process_table import (
    ProcessEntry,
    all_processes,
    signal_exactly,
    token_of,
)
from svc_trial_runner.domain.claims import JournalState, ProcessIdentity


class ProcSweeper:
    """Killer of an earlier agent's processes, found in /proc by leader, group or token.

    A process belongs to a trial if it is the recorded leader (number and start time), a member of
    the leader's group or session that is not older, or was executed with the trial's token in its
    environment. The journal itself drops processes of an earlier boot.
    """

    def sweep(self, state: JournalState) -> int:
        """Kill processes of a journal's claims and servers, by leader or token; return a count."""
        leaders = [claim.leader for claim in state.claims.values() if claim.leader is not None]
        leaders += state.servers
        tokens = {claim.token.encode() for claim in state.claims.values()}
        if not leaders and not tokens:
            return 0
        processes = [entry for entry in all_processes() if entry.pid != os.getpid()]
        victims = _members(leaders, processes)
        for entry in processes:
            if entry.pid not in victims and token_of(entry.pid) in tokens:
                victims[entry.pid] = entry
        return sum(signal_exactly(entry, signal.SIGKILL) for entry in victims.values())


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
