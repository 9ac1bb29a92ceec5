"""Launcher of trials on this machine: by preloaded interpreters where possible, else by bash."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from svc_common.code_user import SAME_USER, CodeUser
from svc_common.logs import get_logger
from svc_trial_runner.adapters import spawner
from svc_trial_runner.adapters.process_server import ProcessServer
from svc_trial_runner.adapters.process_table import (
    ZOMBIE,
    ChildList,
    ProcessEntry,
    ProcessSnapshot,
    group_exists,
    read_entry,
    serves_mount,
    signal_exactly,
    signal_group,
    signal_tree,
    with_descendants,
)
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.domain.command import PythonCommand, load_time_variables
from svc_trial_runner.domain.launch import TOKEN_VARIABLE
from svc_trial_runner.ports import LaunchError, LaunchRequest, TrialProcess

_TITLE_SPACE: Final = " " * 4096
"""Unused argument: the kernel shows a process title in the space of the arguments."""
_TOKEN_SPACE: Final = "0" * 64
"""Room in the initial environment of a warm interpreter for the token of each trial."""
_UNFIT_LIMIT: Final = 3
"""Number of unexpected ends after which a kind of warm interpreter is replaced by plain starts."""
_LOOKS_LIMIT: Final = 20
"""Against a daemon that forks faster than it is found."""
_SNAPSHOT_S: Final = 0.02
"""Time for which one snapshot of the machine's processes is used."""

_WarmKey: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""Interpreter, code, load-time variables."""


@dataclass(slots=True)
class _Warm:
    """Preloaded (warm) interpreter that starts trials, its variables, time of its last start."""

    server: ProcessServer
    base: Mapping[str, str]
    used_at_s: float
    """When it last started a trial, on the loop's clock."""
    differences: dict[int, tuple[Mapping[str, str], dict[str, str], list[str]]] = field(
        default_factory=dict
    )
    """By id of another base: that base, variables to set, variables to unset."""


class LocalProcesses:
    """Launcher of trial processes by warm Python interpreters, or by a spawner with bash.

    Args:
        warm_file: program of warm interpreters; None: bash starts everything.
        on_server: called with each process that starts trials, before it starts any.
        on_server_end: called with each of them when it has ended.
        parent_pid: process that the spawner ends with: this one.
        adopts: True if this process is a child subreaper whose children in other sessions are
            servers or orphans of trials.
        code_user: account of trials.
    """

    def __init__(
        self,
        warm_file: Path | None,
        on_server: Callable[[ProcessIdentity], None],
        parent_pid: int,
        *,
        on_server_end: Callable[[ProcessIdentity], None] = lambda _: None,
        adopts: bool = False,
        code_user: CodeUser = SAME_USER,
    ) -> None:
        self._on_server_end = on_server_end
        self._code_user = code_user
        self._children = ChildList() if adopts else None
        self._warm_file = warm_file
        self._on_server = on_server
        self._parent_pid = parent_pid
        self._spawner: ProcessServer | None = None
        self._spawner_bases: dict[int, tuple[Mapping[str, str], str]] = {}
        self._bases: dict[int, Mapping[str, str]] = {}
        self._warm: dict[_WarmKey, _Warm] = {}
        self._keys: dict[tuple[int, str, str], _WarmKey | None] = {}
        self._failures: dict[_WarmKey, int] = {}
        self._retired: list[ProcessServer] = []
        self._isolated: set[ProcessServer] = set()
        """Spawners of one process each."""
        self._snapshot: tuple[float, ProcessSnapshot] | None = None

    @property
    def warm_count(self) -> int:
        """Number of warm interpreters."""
        return len(self._warm)

    async def launch(self, request: LaunchRequest) -> TrialProcess:
        """Start a trial: by its own spawner if isolated, else warm, else by the shared spawner."""
        if request.isolated:
            return await self._launch_isolated(request)
        if request.python is not None and self._warm_file is not None:
            key = self._warm_key(request, request.python)
            if key is not None and self._failures.get(key, 0) < _UNFIT_LIMIT:
                try:
                    return await self._launch_warm(request, request.python, key)
                except LaunchError as error:
                    get_logger().warning(
                        "warm start failed, starting plain", trial=request.label, error=str(error)
                    )
        return await self._launch_plain(request)

    # warm

    def _warm_key(self, request: LaunchRequest, python: PythonCommand) -> _WarmKey | None:
        cached = (id(request.base), python.interpreter, request.code)
        # _bases keeps the bases alive, so that an id is never reused.
        self._bases.setdefault(id(request.base), request.base)
        if cached not in self._keys:
            path = shutil.which(python.interpreter, path=request.base.get("PATH", ""))
            self._keys[cached] = (
                None
                if path is None
                else (path, request.code, load_time_variables(dict(request.base)))
            )
        return self._keys[cached]

    async def _launch_warm(
        self, request: LaunchRequest, python: PythonCommand, key: _WarmKey
    ) -> TrialProcess:
        warm = self._warm.get(key)
        if warm is None or warm.server.gone:
            warm = self._open_warm(request, key)
        warm.used_at_s = asyncio.get_running_loop().time()
        changes, unset = self._differences(warm, request.base)
        message = {
            "argv": python.arguments,
            "cwd": request.directory,
            "environment": {**changes, **request.variables},
            "unset": unset,
            "unbuffered": python.unbuffered,
            "title": [python.interpreter, *(["-u"] * python.unbuffered), *python.arguments],
        }
        descriptors = (request.stdout, request.stderr)
        process = await warm.server.start(request.label, message, descriptors)
        self._failures.pop(key, None)  # it works: a later end is an accident
        return process

    def _open_warm(self, request: LaunchRequest, key: _WarmKey) -> _Warm:
        def gone(server: ProcessServer) -> None:
            warm = self._warm.get(key)
            if warm is not None and warm.server is server:
                del self._warm[key]
            if not server.retired_by_us:
                self._failures[key] = self._failures.get(key, 0) + 1
            self._retire(server)

        server = ProcessServer(
            [key[0], str(self._warm_file), "{fd}", _TITLE_SPACE],
            {**request.base, TOKEN_VARIABLE: _TOKEN_SPACE},
            warm=True,
            on_gone=gone,
            on_end=self._on_server_end,
            code_user=self._code_user,
        )
        self._on_server(server.identity)
        warm = self._warm[key] = _Warm(server, request.base, 0.0)
        return warm

    def _differences(
        self, warm: _Warm, base: Mapping[str, str]
    ) -> tuple[dict[str, str], list[str]]:
        """Return variables to set and unset so that a warm interpreter fits another environment."""
        if base is warm.base:
            return {}, []
        known = warm.differences.get(id(base))
        if known is None:
            changes = {name: text for name, text in base.items() if warm.base.get(name) != text}
            unset = [name for name in warm.base if name not in base]
            known = warm.differences[id(base)] = (base, changes, unset)
        return known[1], known[2]

    # plain

    async def _launch_plain(self, request: LaunchRequest) -> TrialProcess:
        server = self._spawner
        if server is None or server.gone:
            server = self._open_spawner()
        if id(request.base) not in self._spawner_bases:
            _send_base(server, request)
            self._spawner_bases[id(request.base)] = (request.base, request.code)
        return await _start_plain(server, request)

    def _open_spawner(self) -> ProcessServer:
        self._spawner = server = self._new_spawner()
        self._spawner_bases = {}
        return server

    def _new_spawner(self) -> ProcessServer:
        server = ProcessServer(
            [sys.executable, "-ISE", spawner.__file__, "{fd}", str(self._parent_pid)],
            {"PATH": "/usr/local/bin:/usr/bin:/bin"},
            warm=False,
            on_gone=self._retire,
            on_end=self._on_server_end,
            code_user=self._code_user,
        )
        self._on_server(server.identity)
        return server

    async def _launch_isolated(self, request: LaunchRequest) -> TrialProcess:
        """Start a trial by a spawner of its own, which ends with it."""
        server = self._new_spawner()
        self._isolated.add(server)
        try:
            _send_base(server, request)
            process = await _start_plain(server, request)
        except BaseException:
            self._isolated.discard(server)
            server.close()
            raise

        def ended(_: object) -> None:
            self._isolated.discard(server)
            server.quit()

        process.ended.add_done_callback(ended)
        return process

    # ends

    def orphan_ended(self, pid: int, status: int) -> None:
        """Pass the end of an adopted orphan to the process servers, in case it ran a trial.

        Args:
            pid: of the child.
            status: its wait status.
        """
        for server in self._servers():
            server.orphan_ended(pid, status)

    def terminate(self, process: TrialProcess, token: str) -> None:
        """Send TERM to the group and to descendants that left it."""
        self._signal(process.identity, token, signal.SIGTERM)

    def kill(self, process: TrialProcess, token: str) -> None:
        """Send KILL to the group and to all descendants."""
        self._signal(process.identity, token, signal.SIGKILL)

    def _signal(self, leader: ProcessIdentity, token: str, number: signal.Signals) -> None:
        snapshot = self._snapshot_now()
        related = snapshot.descendants(leader.pid) + snapshot.carrying(token, self._parent_pid)
        by_pid = {entry.pid: entry for entry in related}
        signal_tree(leader, snapshot, by_pid.values(), number)

    def _snapshot_now(self) -> ProcessSnapshot:
        """Return a snapshot of all processes, cached for a moment for many stops at once."""
        moment_s = asyncio.get_running_loop().time()
        if self._snapshot is None or moment_s - self._snapshot[0] > _SNAPSHOT_S:
            self._snapshot = (moment_s, ProcessSnapshot(code_user=self._code_user))
        return self._snapshot[1]

    def has_leftovers(self, process: TrialProcess) -> bool:
        """Return whether members of a trial's process group, or daemons of trials, still run."""
        return group_exists(process.identity.pid) or bool(self._orphans())

    def kill_orphans(self, older_than: int | None) -> int:
        """Kill adopted processes that no running trial owns, and their descendants.

        A process with `PR_SET_CHILD_SUBREAPER` adopts its descendants, and a daemon may fork
        between a look and its end: the look is repeated until it finds no further process.

        Args:
            older_than: start time, in clock ticks, from which on a process may be of a trial that
                runs; None: no trial runs.

        Returns:
            Number of processes that were killed.
        """
        killed: set[tuple[int, int]] = set()
        for _ in range(_LOOKS_LIMIT):
            roots = [o for o in self._orphans() if older_than is None or o.start_time < older_than]
            found = [entry for entry in with_descendants(roots) if entry.name not in killed]
            if not found:
                break
            killed.update(one.name for one in found if signal_exactly(one, signal.SIGKILL))
        return len(killed)

    def _orphans(self) -> list[ProcessEntry]:
        """Return adopted processes outside the agent's session that are no process server's.

        The agent's own children share its session, and the servers are known. The daemon of a
        mounted storage is no trial's: the mount would end with it.
        """
        if self._children is None:
            return []
        servers = self._servers()
        known = {server.identity.pid for server in servers}
        known |= {pid for server in servers for pid in server.trial_pids()}
        strangers = [pid for pid in self._children.pids() if pid not in known]
        if not strangers:
            return []
        session = os.getsid(0)
        return [
            entry
            for entry in map(read_entry, strangers)
            if entry is not None
            and entry.session != session
            and entry.state != ZOMBIE
            and not serves_mount(entry.pid)
        ]

    def release(self, code: str, ending: Collection[int] = ()) -> None:
        """End a code folder's warm interpreters that only run `ending`; drop cached environments.

        Args:
            code: the folder.
            ending: ids of processes that end by themselves.
        """
        for key, warm in list(self._warm.items()):
            if key[1] == code and warm.server.ends_with(ending):
                del self._warm[key]
                warm.server.quit()
        self._keys = {cached: key for cached, key in self._keys.items() if cached[2] != code}
        used = {cached[0] for cached in self._keys}
        self._bases = {name: base for name, base in self._bases.items() if name in used}
        for name, (_, used_in) in list(self._spawner_bases.items()):
            if used_in == code and self._spawner is not None:
                del self._spawner_bases[name]
                self._spawner.send({"op": "forget", "id": str(name)})

    def release_idle(self, idle_s: float) -> None:
        """End warm interpreters without a trial that were last used `idle_s` or longer ago."""
        limit_s = asyncio.get_running_loop().time() - idle_s
        for key, warm in list(self._warm.items()):
            if warm.used_at_s <= limit_s and not warm.server.running:
                del self._warm[key]
                warm.server.quit()

    def continue_stopped(self) -> None:
        """Send SIGCONT to process servers with trials, in case a trial has stopped its starter."""
        for server in self._servers():
            if server.running:
                signal_group(server.identity.pid, signal.SIGCONT)

    def _servers(self) -> set[ProcessServer]:
        """Return all process servers: warm interpreters, spawners, and those about to end."""
        servers = {warm.server for warm in self._warm.values()}
        spawners = {self._spawner} if self._spawner is not None else set()
        return servers | spawners | self._isolated | set(self._retired)

    def _retire(self, server: ProcessServer) -> None:
        self._retired = [old for old in self._retired if old.running]
        self._retired.append(server)

    async def aclose(self) -> None:
        """Close all process servers at once, which ends all trials."""
        servers = self._servers()
        if self._children is not None:
            self._children.close()
        self._warm.clear()
        self._spawner = None
        for server in servers:
            server.close()
        self._retired.clear()
        self._isolated.clear()
        await asyncio.sleep(0)  # lets waiters see the ends


def _send_base(server: ProcessServer, request: LaunchRequest) -> None:
    base = str(id(request.base))
    server.send({"op": "base", "id": base, "environment": dict(request.base)})


async def _start_plain(server: ProcessServer, request: LaunchRequest) -> TrialProcess:
    message = {
        "argv": ["bash", "-c", request.command],
        "cwd": request.directory,
        "environment": dict(request.variables),
        "base": str(id(request.base)),
    }
    return await server.start(request.label, message, (request.stdout, request.stderr))
