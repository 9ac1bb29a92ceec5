"""Deployment of `deploy/` as plain processes: the same commands and variables.

A container's name becomes loopback, its port a free one, its folders are temporary.
"""

import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tests.support import wait
from tests.support.ports import free_port
from tests.support.servers import require_binary

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
_IMAGE_HOME = "/var/lib/nni"


@dataclass(frozen=True, slots=True)
class Part:
    """Container of a deployment, run as a process."""

    name: str
    command: Sequence[str]
    variables: Mapping[str, str]
    health_check: Sequence[str] = ()
    """Command of the health check; empty: `start` does not wait for it."""


class Addresses:
    """Map from addresses of containers to addresses of this machine."""

    def __init__(self, names: Sequence[str]) -> None:
        self._by_name = {name: f"127.0.0.1:{free_port()}" for name in names}

    def put(self, name: str, address: str) -> None:
        """Map a container's address to a real one; both are `host:port`."""
        self._by_name[name] = address

    def of(self, name: str) -> str:
        """Return the real address of a container's address."""
        return self._by_name[name]

    def port(self, name: str) -> str:
        """Return the real port of a container's address."""
        return self.of(name).rpartition(":")[2]

    def replaced(self, text: str) -> str:
        """Return a text with every known address replaced, longest names first."""
        for name in sorted(self._by_name, key=len, reverse=True):
            text = text.replace(name, self._by_name[name])
        return text


class Deployment:
    """Running parts of a deployment; `close` stops them."""

    def __init__(self, folder: Path, addresses: Addresses) -> None:
        self.folder = folder
        self.addresses = addresses
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ca: Path | None = None
        """Certificate authority of the manager; None: the manager serves plain HTTP."""

    def start(self, part: Part) -> None:
        """Start a part; return when its own health check passes."""
        home = self.folder / part.name
        home.mkdir(parents=True, exist_ok=True)
        beside = Path(sys.executable).parent
        variables = {
            name: self.addresses.replaced(text).replace(f"{_IMAGE_HOME}/state", str(home / "state"))
            for name, text in part.variables.items()
        }
        # Only PATH of the caller's environment: a container has no more.
        folder = str(self.folder)
        environment = {"HOME": folder, **variables, "PATH": f"{beside}:{os.defpath}"}
        with (self.folder / f"{part.name}.log").open("ab") as log:
            self.processes[part.name] = subprocess.Popen(
                self._here(part.command), env=environment, cwd=home, stdout=log, stderr=log
            )
        if part.health_check:
            check = self._here(part.health_check)
            wait.until(
                lambda: self._is_healthy(part.name, check, environment),
                START_TIMEOUT_S,
                part.name,
            )

    def stop(self, name: str) -> int:
        """Stop one part with TERM; return its exit code."""
        process = self.processes.pop(name)
        process.terminate()
        return process.wait(STOP_TIMEOUT_S)

    def kill(self, name: str) -> None:
        """Kill one part with SIGKILL."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        """Stop all running parts in reverse order."""
        for name in reversed(list(self.processes)):
            self.stop(name)

    def log(self, name: str) -> str:
        """Return the log of a part."""
        return (self.folder / f"{name}.log").read_text()

    def call(self, method: str, path: str, token: str, body: object = None) -> Any:
        """Call the manager's REST API with a token; return the decoded answer."""
        request = Request(
            f"{'http' if self.ca is None else 'https'}://{self.addresses.of('manager:8080')}"
            f"/api/v1/nni{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            context = None if self.ca is None else ssl.create_default_context(cafile=str(self.ca))
            with urlopen(request, timeout=30, context=context) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            raise AssertionError(f"{error.code}: {error.read().decode()}") from error

    def _here(self, command: Sequence[str]) -> list[str]:
        words = [self.addresses.replaced(word) for word in command if word not in {"tini", "--"}]
        words[0] = sys.executable if words[0] == "python" else require_binary(words[0])
        return words

    def _is_healthy(self, name: str, check: Sequence[str], environment: Mapping[str, str]) -> bool:
        process = self.processes[name]
        assert process.poll() is None, self.log(name)
        done = subprocess.run(check, env=environment, capture_output=True, check=False)
        return done.returncode == 0


@contextmanager
def deployed(folder: Path, addresses: Addresses, parts: Sequence[Part]) -> Iterator[Deployment]:
    """Start all parts in order; stop them at the end."""
    deployment = Deployment(folder, addresses)
    with ExitStack() as stack:
        stack.callback(deployment.close)
        for part in parts:
            deployment.start(part)
        yield deployment


def answers_http(url: str) -> bool:
    """Return whether a GET of the address succeeds."""
    try:
        with urlopen(url, timeout=2.0):
            return True
    except (URLError, OSError):
        return False
