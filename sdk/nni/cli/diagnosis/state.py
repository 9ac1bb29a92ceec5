"""Checks of the state directory: permissions, errors in logs, holders of ports."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psutil

from nni.cli.diagnosis.finding import Finding

DEFAULT_PORT: Final = 8080
"""Port of an experiment's page without `--port`."""
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_LATELY: Final = timedelta(hours=1)
_LOG_TAIL_BYTES: Final = 256 * 1024
_LONGEST_EVENT: Final = 100


def check_token() -> Iterator[Finding]:
    """Yield ok, or bad if another user can read the token; nothing without a file of it."""
    from nni.experiment.endpoint import endpoint_path

    path = endpoint_path()
    if not path.exists():
        return
    if stat.S_IMODE(path.stat().st_mode) & _OTHERS:
        text = f"others can read {path}; run: chmod 600 {path}, then nnictl down and nnictl up"
        yield Finding("token", "bad", text)
    else:
        yield Finding("token", "ok", f"only you can read {path}")


def check_endpoint_file() -> Iterator[Finding]:
    """Yield ok, or bad if `endpoint.json` is damaged or its supervisor dead; no file: nothing."""
    from nni.experiment.endpoint import endpoint_path, read_endpoint

    path = endpoint_path()
    if not path.exists():
        return
    try:
        fields = json.loads(path.read_text("utf-8") if path.is_file() else "")
        pid = int(fields["pid"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        text = f"{path} is damaged; remove it, then bring the services up with: nnictl up"
        yield Finding("endpoint file", "bad", text)
        return
    if read_endpoint() is None:
        text = (
            f"{path} is stale: its supervisor (pid {pid}) was killed; bring the services up again "
            "with: nnictl up, and what ran goes on"
        )
        yield Finding("endpoint file", "bad", text)
    else:
        yield Finding("endpoint file", "ok", str(path))


def check_logs() -> Iterator[Finding]:
    """Yield findings: bad if the log folder has wrong rights, a note on errors of the last hour."""
    from nni.experiment.environment import nni_home

    folder = nni_home() / "log"
    if not folder.exists():
        return
    if not folder.is_dir():
        text = f"{folder} is no folder; move it away, then run: nnictl up"
        yield Finding("log folder", "bad", text)
        return
    if stat.S_IMODE(folder.stat().st_mode) & _OTHERS_WRITE:
        text = f"others can write to {folder}; run: chmod 700 {folder}"
        yield Finding("log folder", "bad", text)
    elif not os.access(folder, os.W_OK | os.X_OK):
        text = (
            f"{folder} cannot be written, and no service starts without its audit trail there; "
            "make it writable, and they go on by themselves"
        )
        yield Finding("log folder", "bad", text)
    else:
        yield Finding("log folder", "ok", str(folder))
    since = datetime.now(UTC) - _LATELY
    for path in sorted(folder.glob("*.log")):
        errors = errors_since(path, since)
        if errors:
            text = f"{len(errors)} errors within the last hour, last: {errors[-1]}; see {path}"
            yield Finding(f"log of {path.stem}", "note", text)


def errors_since(path: Path, since: datetime) -> list[str]:
    """Return the errors that a service has logged since an instant, from its log's tail."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LOG_TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
            if entry["level"] != "error" or datetime.fromisoformat(entry["timestamp"]) < since:
                continue
        except (ValueError, KeyError, TypeError):
            continue  # no line of ours, or cut
        cause = entry.get("error") or str(entry.get("exception", "")).strip().rpartition("\n")[2]
        found.append(f"{entry.get('event', '')}: {cause}"[:_LONGEST_EVENT].rstrip(": "))
    return found


def check_ports(page_port: int = DEFAULT_PORT) -> Iterator[Finding]:
    """Yield findings: bad if a foreign process has a service's port; a note for a used page port.

    Args:
        page_port: the page's usual port.
    """
    from nni.experiment.endpoint import read_endpoint
    from nni.experiment.errors import RefusedError
    from nni.experiment.preflight import check_port, port_holder

    endpoint = read_endpoint()
    if endpoint is not None and endpoint.remote is None:
        own = _own_pids(endpoint.supervisor_pid)
        for name, address in (("page and REST", endpoint.http), ("gRPC", f"//{endpoint.grpc}")):
            port = urlsplit(address).port or 0
            holder = _listener(port)
            if holder is not None and holder not in own:
                text = (
                    f"{port} of {name} is held by {port_holder(port) or f'pid {holder}'}; end that "
                    "program, or run: nnictl down, then nnictl up"
                )
                yield Finding("ports", "bad", text)
    try:
        check_port(page_port)
    except RefusedError as error:
        yield Finding("ports", "note", f"{error}")
    else:
        yield Finding("ports", "ok", f"{page_port} is free")


def _own_pids(supervisor_pid: int) -> set[int]:
    try:
        supervisor = psutil.Process(supervisor_pid)
        return {supervisor_pid, *(child.pid for child in supervisor.children(recursive=True))}
    except psutil.NoSuchProcess:
        return set()


def _listener(port: int) -> int | None:
    """Return the id of the process that listens on a TCP port here; None if none, or unknown."""
    try:
        connections = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return None
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN and getattr(connection.laddr, "port", 0) == port:
            return connection.pid
    return None
