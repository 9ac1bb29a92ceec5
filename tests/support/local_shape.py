"""Local installation with real processes, for tests that start two services or more."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from nni.errors import NniError
from nni.experiment.rest import get_json
from tests.support import wait
from tests.support.ports import free_port
from tests.support.servers import require_binary

START_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 5.0


@dataclass
class LocalShape:
    """Installation in a folder of its own."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    """Settings of the services beside `NNI_HOME`."""

    @property
    def home(self) -> Path:
        """`NNI_HOME`."""
        return self.folder / "nni"

    @property
    def root(self) -> Path:
        """Default folder of experiments."""
        return self.folder / "nni-experiments"

    @property
    def environment(self) -> dict[str, str]:
        """Environment of commands that use these services."""
        beside = str(Path(sys.executable).parent)
        path = os.environ.get("PATH", os.defpath)
        return {
            **{name: value for name, value in os.environ.items() if name != "NNI_READY_FD"},
            **self.variables,
            "HOME": str(self.folder),
            "NNI_HOME": str(self.home),
            "PATH": f"{beside}{os.pathsep}{path}",
        }

    def start(self) -> None:
        """Start the services; return when they are ready."""
        self.run([sys.executable, "-m", "svc_standalone", "up"], timeout_s=START_TIMEOUT_S)

    def stop(self) -> None:
        """Stop the services; nothing happens if they are not up."""
        self.run([sys.executable, "-m", "svc_standalone", "down"], timeout_s=START_TIMEOUT_S)

    def endpoint(self) -> dict[str, Any]:
        """Return the content of `endpoint.json`."""
        content: dict[str, Any] = json.loads((self.home / "endpoint.json").read_text())
        return content

    def pids(self) -> dict[str, int]:
        """Return the process ids of the services by name (nats, manager, dispatcher, …)."""
        supervisor = int(self.endpoint()["pid"])
        found: dict[str, int] = {}
        for pid in children(supervisor):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            except OSError:  # it has ended since
                continue
            if command == [""]:  # it has ended, and the supervisor does not know yet
                continue
            name = next((part for part in command if part.startswith("svc_")), "nats")
            found[name.removeprefix("svc_").replace("_", "-")] = pid
        return found

    def ports(self) -> dict[str, int]:
        """Return the ports that the supervisor has held since its last start, by name."""
        lines = (self.home / "log" / "supervisor.log").read_text("utf-8").splitlines()
        held = [line for line in map(json.loads, lines) if line["event"] == "ports held"]
        return {name: value for name, value in held[-1].items() if isinstance(value, int)}

    def bus_password(self, user: str) -> str:
        """Return the password of a user of the bus."""
        config = (self.home / "nats.conf").read_text()
        found = re.search(rf'user: "{user}", password: "([^"]+)"', config)
        assert found is not None, user
        return found.group(1)

    def kill(self, service: str) -> None:
        """Kill one service with SIGKILL; the supervisor starts it again."""
        os.kill(self.pids()[service], signal.SIGKILL)

    def run(
        self, command: Sequence[str | Path], *, timeout_s: float = 150.0, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command that uses these services; its output is captured."""
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if check and done.returncode != 0:
            raise AssertionError(
                f"{command} ended with {done.returncode}: {done.stderr}{done.stdout}"
            )
        return done

    def nnictl(
        self, *arguments: str | Path, timeout_s: float = 150.0, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run `nnictl` with these services; `create` starts them."""
        program = Path(sys.executable).parent / "nnictl"
        return self.run([program, *arguments], timeout_s=timeout_s, check=check)

    def create(self, config: Path, *arguments: str) -> str:
        """Create an experiment on a free port and return its id."""
        port = ("--port", str(free_port()))
        done = self.nnictl("create", "--config", config, *port, *arguments)
        found = re.search(r"The experiment id is (\w+)", done.stdout)
        assert found is not None, done.stdout
        return found.group(1)

    def state(self, experiment: str) -> str:
        """Return the state of an experiment, e.g. `RUNNING`; start services that were killed."""
        # A process of nnictl for each look would take a processor from what is waited for.
        with suppress(NniError, OSError, KeyError, ValueError):
            endpoint = self.endpoint()
            url = f"{endpoint['http']}/api/v1/nni/experiments/{experiment}/check-status"
            return str(get_json(url, endpoint["token"], _ANSWER_TIMEOUT_S)["status"])
        done = self.nnictl("experiment", "status", experiment, check=False)
        found = re.search(r'"status":\s*"(\w+)"', done.stdout)
        return found.group(1) if found else ""

    def wait_for(self, experiment: str, *states: str, timeout_s: float = 150.0) -> str:
        """Wait until an experiment is in one of `states`, and return it."""

        def reached() -> str:
            state = self.state(experiment)
            return state if state in states else ""

        return wait.until(reached, timeout_s, f"{experiment} {' or '.join(states)}")

    def wait_for_state(self, experiment: str, state: str) -> None:
        """Wait until an experiment is in `state`."""
        self.wait_for(experiment, state)

    def trials(self, experiment: str) -> list[dict[str, Any]]:
        """Return all trials of an experiment as `nnictl trial ls --json` prints them."""
        done = self.nnictl("trial", "ls", experiment, "--json")
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def free_port(self) -> int:
        """Return a free port."""
        return free_port()


def children(pid: int) -> list[int]:
    """Return the process ids of the children of a process."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


@contextmanager
def running_shape(folder: Path, **variables: str) -> Iterator[LocalShape]:
    """Start the services in a folder; stop them at the end."""
    shape = LocalShape(folder, variables)
    shape.start()
    try:
        yield shape
    finally:
        shape.stop()


@pytest.fixture
def local_shape(private_home: Path) -> Iterator[LocalShape]:
    """Installation in the home folder of this test; the first command starts it."""
    require_binary("nats-server")
    shape = LocalShape(private_home)
    try:
        yield shape
    finally:
        shape.stop()
