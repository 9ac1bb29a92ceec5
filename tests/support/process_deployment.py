"""Deployment of `deploy/` as plain processes: the same commands and variables.

A container's name becomes loopback, its port a free one, its folders are temporary. As root each
service runs with the users, capabilities and mounts of its container, in namespaces of its own.
"""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tests.support import wait
from tests.support.container import contained, reason_without
from tests.support.ports import free_port
from tests.support.servers import require_binary

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
_IMAGE_HOME = "/var/lib/nni"
_SERVICE = (65532, 65532)
"""User of the services in their images."""
_OF_THE_SYSTEM = {"bash", "sh"}
"""Programs of health checks and start scripts, which every image has."""


@dataclass(frozen=True, slots=True)
class Part:
    """Container of a deployment, run as a process."""

    name: str
    command: Sequence[str]
    variables: Mapping[str, str]
    health_check: Sequence[str] = ()
    """Command of the health check; empty: `start` does not wait for it."""
    secrets: Mapping[str, Path] = field(default_factory=dict)
    """Files that are mounted, by their paths in the container."""
    user: str = ""
    """`UID:GID` that the container starts as; empty: it is always a plain process."""
    capabilities: Sequence[str] = ()
    """Capabilities that it starts with."""


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
        self.shared: list[Path] = []
        """Folders that all containers have at the same path."""
        self._contained: set[str] = set()
        self._health_ports: dict[str, int] = {}

    def start(self, part: Part) -> None:
        """Start a part; return when its own health check passes."""
        home = self.folder / part.name
        home.mkdir(parents=True, exist_ok=True)
        contains = bool(part.user) and not reason_without()
        health = self._health_ports.setdefault(part.name, free_port())
        places = {} if contains else self._places(part, home)
        places |= {f"{host}8081": f"{host}{health}" for host in ("0.0.0.0:", "127.0.0.1/")}
        variables = {
            name: _replaced(self.addresses.replaced(text), places)
            for name, text in part.variables.items()
        }
        # Only PATH of the caller's environment: a container has no more.
        beside = Path(sys.executable).parent
        environment = {"HOME": str(self.folder), **variables, "PATH": f"{beside}:{os.defpath}"}
        command = self._here(part.command, places, tini=contains)
        if contains:
            self._contained.add(part.name)
            command = contained(command, self._mounts(part, home), part.capabilities, part.user)
        with (self.folder / f"{part.name}.log").open("ab") as log:
            self.processes[part.name] = subprocess.Popen(
                command, env=environment, cwd=home, stdout=log, stderr=log
            )
        if part.health_check:
            check = self._here(part.health_check, places)
            wait.until(
                lambda: self._is_healthy(part.name, check, environment),
                START_TIMEOUT_S,
                part.name,
            )

    def stop(self, name: str) -> int:
        """Stop one part with TERM; return its exit code."""
        process = self.processes.pop(name)
        os.kill(self.pid(name, process), signal.SIGTERM)
        return process.wait(STOP_TIMEOUT_S)

    def kill(self, name: str) -> None:
        """Kill one part with SIGKILL."""
        process = self.processes.pop(name)
        os.kill(self.pid(name, process), signal.SIGKILL)
        process.wait()

    def pid(self, name: str, process: "subprocess.Popen[bytes] | None" = None) -> int:
        """Return the process id of a part; of a container that of its first process."""
        outer = (process or self.processes[name]).pid
        if name not in self._contained:
            return outer
        return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])

    def health_port(self, name: str) -> int:
        """Return the port of `/livez` and `/readyz` of a part."""
        return self._health_ports[name]

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
            with urlopen(request, timeout=60, context=context) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            raise AssertionError(f"{error.code}: {error.read().decode()}") from error

    def client_variables(self, token: str) -> dict[str, str]:
        """Return the environment of a client on another machine, apart from `PATH`."""
        return {
            "HOME": str(self.folder / "client"),
            "NNI_HOME": str(self.folder / "client" / "nni"),
            "NNI_ENDPOINT": f"https://{self.addresses.of('manager:8080')}",
            "NNI_TOKEN": token,
            "NNI_CA_FILE": str(self.ca),
        }

    def nnictl(self, *words: str, token: str) -> "subprocess.CompletedProcess[str]":
        """Run `nnictl` like a user on another machine."""
        variables = {
            **self.client_variables(token),
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
        }
        return subprocess.run(
            [sys.executable, "-P", "-m", "nni.cli.main", *words],
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )

    def _here(
        self, command: Sequence[str], places: Mapping[str, str], *, tini: bool = False
    ) -> list[str]:
        init = ["tini", "--"] if tini and command[0] == "tini" and which("tini") else []
        words = [
            _replaced(self.addresses.replaced(word), places)
            for word in command
            if word not in {"tini", "--"}
        ]
        if words[0] in _OF_THE_SYSTEM:
            return [*init, *words]
        words = [sys.executable if word == "python" else word for word in words]
        if words[0] != sys.executable:
            words[0] = require_binary(words[0])
        return [*init, *words]

    def _places(self, part: Part, home: Path) -> dict[str, str]:
        """Return folders of this machine by the paths in the container that they replace."""
        places = {_IMAGE_HOME: str(self.folder), f"{_IMAGE_HOME}/state": str(home / "state")}
        for inside, file in part.secrets.items():
            folder = home / Path(inside).parent.relative_to("/")
            folder.mkdir(parents=True, exist_ok=True)
            link = folder / Path(inside).name
            if not link.is_symlink():
                link.symlink_to(file)
            places[str(Path(inside).parent)] = str(folder)
        return places

    def _mounts(self, part: Part, home: Path) -> dict[str, Path]:
        folders = {
            f"{_IMAGE_HOME}/state": home / "state",
            f"{_IMAGE_HOME}/nni-experiments": self.folder / "nni-experiments",
        }
        for folder in folders.values():
            if not folder.exists():
                folder.mkdir()
                os.chown(folder, *_SERVICE)
        return {**part.secrets, **folders, **{str(folder): folder for folder in self.shared}}

    def _is_healthy(self, name: str, check: Sequence[str], environment: Mapping[str, str]) -> bool:
        process = self.processes[name]
        assert process.poll() is None, self.log(name)
        done = subprocess.run(check, env=environment, capture_output=True, check=False)
        return done.returncode == 0


def _replaced(text: str, places: Mapping[str, str]) -> str:
    for inside in sorted(places, key=len, reverse=True):
        text = text.replace(inside, places[inside])
    return text


@contextmanager
def deployed(
    folder: Path, addresses: Addresses, parts: Sequence[Part], shared: Sequence[Path] = ()
) -> Iterator[Deployment]:
    """Start all parts in order; stop them at the end.

    Args:
        folder: of all files.
        addresses: of the parts.
        parts: in the order of their start.
        shared: folders that all containers have at the same path.
    """
    deployment = Deployment(folder, addresses)
    deployment.shared = list(shared)
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
