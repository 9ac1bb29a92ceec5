"""The spawner as a process, driven over its control socket."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.adapters import spawner
from svc_trial_runner.adapters.process_table import identity_of
from svc_trial_runner.domain.claims import ProcessIdentity

WAIT_S = 30.0


class Control:
    """Agent side of the control socket."""

    def __init__(self, process: subprocess.Popen[bytes], peer: socket.socket) -> None:
        self.process = process
        self._peer = peer
        peer.settimeout(WAIT_S)

    def send(self, output: Path | None = None, **message: Any) -> None:
        data = json.dumps(message).encode()
        if output is None:
            self._peer.send(data)
            return
        with output.open("ab") as file:
            socket.send_fds(self._peer, [data], [file.fileno(), file.fileno()])

    def receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._peer.recv(1 << 18))
        return message

    def run(self, output: Path, *argv: str, cwd: str = "/", **variables: str) -> dict[str, Any]:
        """Start a command; return its last event."""
        self.send(output, op="start", id="t", base="b", argv=argv, cwd=cwd, environment=variables)
        event = self.receive()
        return self.receive() if event["event"] == "started" else event


@pytest.fixture
def control() -> Iterator[Control]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-ISE", spawner.__file__, str(theirs.fileno()), str(os.getpid())]
    with subprocess.Popen(command, pass_fds=(theirs.fileno(),)) as process, ours:
        theirs.close()
        control = Control(process, ours)
        assert control.receive() == {"event": "ready", "pid": process.pid, "preloaded": []}
        control.send(op="base", id="b", environment={"PATH": os.environ["PATH"], "SHARED": "s"})
        yield control
        ours.close()
        assert process.wait(WAIT_S) == 0


def test_command_has_base_and_own_variables_and_its_folder(
    control: Control, tmp_path: Path
) -> None:
    script = "echo $SHARED $OWN; pwd; exit 3"

    event = control.run(tmp_path / "out", "sh", "-c", script, cwd=str(tmp_path), OWN="o")

    assert (event["event"], os.waitstatus_to_exitcode(event["status"])) == ("exited", 3)
    assert (tmp_path / "out").read_text() == f"s o\n{tmp_path}\n"


def test_command_leads_its_own_session_without_input(control: Control, tmp_path: Path) -> None:
    control.send(
        tmp_path / "out",
        op="start",
        id="t",
        base="b",
        argv=["sh", "-c", "cat; ps -o sid= -p $$"],
        cwd="/",
        environment={},
    )
    started = control.receive()
    control.receive()

    assert int((tmp_path / "out").read_text()) == started["pid"]


def test_command_ignores_no_signal_that_the_spawner_ignores(
    control: Control, tmp_path: Path
) -> None:
    output = tmp_path / "out"

    control.run(output, "grep", "SigIgn", "/proc/self/status")

    ignored = int(output.read_text().split()[1], 16)
    numbers = [signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # by this process, under nohup
        numbers.append(signal.SIGHUP)
    assert [number.name for number in numbers if ignored >> (number - 1) & 1] == []


def test_spawner_outlives_signals_to_all_processes(control: Control, tmp_path: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        control.process.send_signal(number)

    assert control.run(tmp_path / "out", "true")["status"] == 0


def test_spawner_holds_no_output_of_a_command(control: Control, tmp_path: Path) -> None:
    output = tmp_path / "out"

    control.run(output, "true")

    held = Path(f"/proc/{control.process.pid}/fd").iterdir()
    assert [link for link in held if os.path.realpath(link) == str(output)] == []


def test_killed_command_has_its_signal(control: Control, tmp_path: Path) -> None:
    event = control.run(tmp_path / "out", "sh", "-c", "kill -9 $$")

    assert os.waitstatus_to_exitcode(event["status"]) == -signal.SIGKILL


def test_missing_folder_is_refused(control: Control, tmp_path: Path) -> None:
    event = control.run(tmp_path / "out", "true", cwd="/no/such/folder")

    assert (event["event"], event["id"]) == ("refused", "t")
    assert "/no/such/folder" in event["reason"]


def test_forgotten_base_is_refused(control: Control, tmp_path: Path) -> None:
    control.send(op="forget", id="b")

    assert control.run(tmp_path / "out", "true")["event"] == "refused"


def test_missing_program_is_reported_on_the_trials_stderr(control: Control, tmp_path: Path) -> None:
    event = control.run(tmp_path / "out", "no-such-program")

    assert os.waitstatus_to_exitcode(event["status"]) == 126
    assert "nni: the trial cannot be started" in (tmp_path / "out").read_text()


def test_quit_ends_the_spawner(control: Control) -> None:
    control.send(op="quit")

    assert control.process.wait(WAIT_S) == 0


def test_end_of_one_command_is_reported_while_another_runs(
    control: Control, tmp_path: Path
) -> None:
    def start(name: str, *argv: str) -> None:
        output = tmp_path / name
        control.send(output, op="start", id=name, base="b", argv=argv, cwd="/", environment={})

    start("long", "sleep", "600")
    long = control.receive()
    identity = identity_of(long["pid"])
    start("short", "true")
    events = [control.receive() for _ in range(2)]
    start("next", "true")
    events += [control.receive() for _ in range(2)]
    os.kill(long["pid"], signal.SIGKILL)

    assert [(event["id"], event["event"]) for event in events] == [
        ("short", "started"),
        ("short", "exited"),
        ("next", "started"),
        ("next", "exited"),
    ]
    assert control.receive()["id"] == "long"
    assert identity == ProcessIdentity(long["pid"], long["start_time"])
