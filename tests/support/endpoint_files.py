"""`endpoint.json`, and idle processes with the command lines of an installation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nni.version import __version__

SUPERVISOR = "svc_standalone"
"""Word in the command line of a supervisor."""
WAIT = "import sys, time; print('up', flush=True); time.sleep(600)"
"""Program that prints a line once it runs, then sleeps."""

Spawn = Callable[..., "subprocess.Popen[bytes]"]
"""Start a process with these words in its command line; ``program`` is its interpreter, further
keywords are its variables."""


@contextmanager
def process_spawner(home: Path) -> Iterator[Spawn]:
    """Yield a function that starts processes of the installation in ``home``; kill them after."""
    started: list[subprocess.Popen[bytes]] = []

    def start(
        *words: str, program: str = sys.executable, **variables: str
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [program, "-c", WAIT, *words],
            stdout=subprocess.PIPE,
            env={**os.environ, "NNI_HOME": str(home), **variables},
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def write_endpoint(home: Path, pid: int, **changes: object) -> Path:
    """Write `endpoint.json` as the supervisor ``pid`` does; return its path."""
    path = home / "endpoint.json"
    fields = {
        "version": __version__,
        "pid": pid,
        "started_at": "2026-01-01T00:00:00+00:00",
        "http": "http://127.0.0.1:1",
        "grpc": "127.0.0.1:1",
        "nats": "",
        "token": "t",
        **changes,
    }
    path.write_text(json.dumps(fields))
    path.chmod(0o600)
    return path
