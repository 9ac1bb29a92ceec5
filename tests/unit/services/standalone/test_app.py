import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE

import pytest

from svc_common.messaging.permissions import runner_user
from svc_standalone import app
from svc_standalone.app import BusPort, installed_version, make_plan, prepare_home
from svc_standalone.commands import BUS
from svc_standalone.endpoint import (
    STARTING_LOCK,
    SUPERVISOR_LOCK,
    Endpoint,
    Lock,
    read_endpoint,
    write_endpoint,
)
from svc_standalone.held_ports import HeldPorts
from svc_standalone.settings import Settings

RUN = """
import ctypes, sys
from pathlib import Path
from svc_standalone.app import run
from svc_standalone.settings import Settings

code = run(Settings(Path(sys.argv[1]), http_port=int(sys.argv[2])))
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), file=sys.stderr)  # PR_GET_DUMPABLE
sys.exit(code)
"""


def run_with_report(home: Path, port: int = 0) -> tuple[int, dict[str, object]]:
    """Run a supervisor that ends at once; return its exit code and its report on the pipe.

    In a process of its own: it forbids its inspection until it ends, and redirects all logs.
    """
    reader, writer = os.pipe()
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(home), str(port)],
        env={**os.environ, "NNI_READY_FD": str(writer)},
        pass_fds=[writer],
        capture_output=True,
        check=False,
    )
    os.close(writer)
    assert done.stderr == b"0\n", "it can be inspected, or its log is not in its file"
    with os.fdopen(reader) as report:
        return done.returncode, json.loads(report.read())


def test_home_is_private_and_damaged_places_are_repaired(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    (home / "log").write_text("no folder")

    prepare_home(Settings(home))

    assert S_IMODE(home.stat().st_mode) == 0o700
    assert (home / "log").is_dir()


def test_missing_parents_of_the_home_are_created(tmp_path: Path) -> None:
    home = tmp_path / "of" / "nni"

    prepare_home(Settings(home))

    assert S_IMODE(home.stat().st_mode) == 0o700
    assert (home / "jetstream").is_dir()


@pytest.mark.parametrize(
    "name", ["endpoint.json", "nats.conf", "supervisor.lock", "starting.lock", "log/supervisor.log"]
)
def test_folder_in_place_of_a_file_is_renamed(name: str, tmp_path: Path) -> None:
    (tmp_path / name / "content").mkdir(parents=True)

    prepare_home(Settings(tmp_path))

    place = tmp_path / name
    (moved,) = place.parent.glob(f"{place.name}.damaged*")
    assert not place.exists()
    assert (moved / "content").is_dir()


def test_start_in_a_home_that_is_a_file_is_refused_with_a_remedy(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("of the user")

    code, report = run_with_report(home)

    assert code == 1
    assert report == {"ready": False, "error": f"cannot use {home}: File exists; set NNI_HOME"}


def test_start_beside_a_supervisor_reports_its_endpoint_without_the_token(
    tmp_path: Path,
) -> None:
    lock = Lock.take(tmp_path / SUPERVISOR_LOCK)
    write_endpoint(tmp_path, Endpoint("4.0", 7, "now", "http://h", "g", "n", "hush"))

    code, report = run_with_report(tmp_path)

    assert code == 0
    assert (report["ready"], report["http"], report["pid"]) == (True, "http://h", "7")
    assert "token" not in report
    lock.release()


def test_start_at_a_taken_port_is_refused_and_leaves_no_endpoint(
    tmp_path: Path,
) -> None:
    write_endpoint(tmp_path, Endpoint("4.0", 7, "now", "http://h", "g", "n", "hush"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        code, report = run_with_report(tmp_path, port)

    assert code == 1
    assert str(report["error"]).startswith(f"port {port} cannot be used")
    assert not (tmp_path / "endpoint.json").exists()
    assert "start failed" in (tmp_path / "log" / "supervisor.log").read_text()


def test_home_that_is_a_file_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("of the user")

    with pytest.raises(FileExistsError):
        prepare_home(Settings(home))

    assert home.read_text() == "of the user"


def test_token_is_new_for_each_run(tmp_path: Path) -> None:
    held = HeldPorts.draw()

    plans = [make_plan(Settings(tmp_path), held.numbers) for _ in range(2)]

    held.close()
    assert plans[0].token != plans[1].token


def test_version_is_that_of_the_distribution() -> None:
    assert installed_version() == importlib.metadata.version("nni-standalone")


def test_bus_is_trusted_as_a_process_of_this_user_only(tmp_path: Path) -> None:
    held = HeldPorts.draw()
    port = BusPort(held, make_plan(Settings(tmp_path), held.numbers))

    settings = port.bus_settings()

    held.close()
    assert settings.owner == os.geteuid()
    assert settings.url == port.plan.nats_url


def test_next_bus_can_bind_its_port_and_finds_no_damaged_state(tmp_path: Path) -> None:
    held = HeldPorts.draw()
    port = BusPort(held, make_plan(Settings(tmp_path), held.numbers))
    state = tmp_path / "jetstream" / "jetstream" / "NNI" / "streams" / "S" / "obs" / "c" / "o.dat"
    state.parent.mkdir(parents=True)
    state.write_bytes(b"half")

    port.lend()

    with socket.socket() as bus:
        bus.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bus.bind(("127.0.0.1", port.plan.ports.nats))
        bus.listen()
    held.close()
    assert not state.exists()


def test_new_configuration_of_the_bus_has_the_present_port(tmp_path: Path) -> None:
    held = HeldPorts.draw()
    port = BusPort(held, make_plan(Settings(tmp_path), held.numbers))

    port.write_bus_config()

    held.close()
    assert f":{port.plan.ports.nats}" in (tmp_path / "nats.conf").read_text()


def test_all_children_get_the_new_port_of_the_bus(tmp_path: Path) -> None:
    held = HeldPorts.draw()
    port = BusPort(held, make_plan(Settings(tmp_path), held.numbers))
    redrawn: list[str] = []
    port.on_redrawn(redrawn.append)
    before = port.plan.nats_url
    port.lend()
    assert port.take_back() is None
    held.http.getsockname()
    # A program that listens there, for which the port need not be lent.
    held._nats.listen()

    commands = port.take_back()

    assert commands is not None
    assert redrawn == [port.plan.nats_url]
    assert port.plan.nats_url != before
    urls = {
        command.environment["NNI_NATS_URL"] for name, command in commands.items() if name != BUS
    }
    assert urls == {port.plan.nats_url}
    held.close()


def test_file_system_without_locks_is_named_when_the_start_is_refused(tmp_path: Path) -> None:
    # A process of its own: the supervisor forbids its inspection until it ends.
    code = textwrap.dedent(
        """
        import errno, fcntl, sys
        from pathlib import Path

        def refuse(*_):
            raise OSError(errno.ENOLCK, "No locks available")

        fcntl.flock = refuse
        from svc_standalone.app import run
        from svc_standalone.settings import Settings

        sys.exit(run(Settings(Path(sys.argv[1]))))
        """
    )
    reader, writer = os.pipe()

    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "home")],
        env={**os.environ, "NNI_READY_FD": str(writer)},
        pass_fds=[writer],
        check=False,
    )

    os.close(writer)
    with os.fdopen(reader) as report:
        refused = json.loads(report.read())
    assert done.returncode == 1
    assert refused["error"].startswith(f"cannot use {tmp_path / 'home'}: No locks available")


def test_supervisor_without_a_fleet_loads_no_client_of_the_bus_and_no_grpc() -> None:
    program = (
        "import sys, svc_standalone.app; "
        "print(*{'grpc', 'nats', 'prometheus_client'} & sys.modules.keys())"
    )

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert loaded.stdout.split() == []


SUPERVISE = """
import sys
from pathlib import Path
from svc_standalone.app import run
from svc_standalone.commands import SERVICES
from svc_standalone.settings import Settings

SERVICES.update({name: "one" for name in SERVICES})
sys.exit(run(Settings(Path(sys.argv[1]))))
"""
"""Supervisor of a bus and of services that all run the package `one`."""

READY_SERVICE = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.write(int(os.environ["NNI_READY_FD"]), b'{"ready": true, "http": "h:1", "grpc": "g:2"}\\n')
signal.sigwait({signal.SIGTERM})
print("stopped")
"""
STOPPING_SERVICE = """
import os, signal
os.kill(os.getppid(), signal.SIGTERM)
signal.pause()
"""
"""Service that stops its supervisor and is never ready."""


@contextmanager
def supervised(folder: Path, service: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Run a supervisor with its home in a folder; yield its process and a pipe of its report."""
    (folder / "one").mkdir()
    (folder / "one" / "__main__.py").write_text(service)
    paths = [str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    reader, writer = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, str(folder / "home")],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "NNI_READY_FD": str(writer),
        },
        pass_fds=[writer],
    ) as process:
        os.close(writer)
        try:
            yield process, reader
        finally:
            os.close(reader)
            process.kill()


def test_supervisor_serves_until_term_and_leaves_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with supervised(tmp_path, READY_SERVICE) as (process, reader):
        report = json.loads(os.read(reader, 65_536))
        endpoint = read_endpoint(home)
        starting = Lock.try_take(home / STARTING_LOCK)
        process.send_signal(signal.SIGHUP)  # of the terminal that it was started from
        process.send_signal(signal.SIGTERM)
        status = process.wait(60)

    assert status == 0
    assert endpoint is not None
    assert (endpoint.http, endpoint.grpc, endpoint.pid) == ("http://h:1", "g:2", process.pid)
    assert endpoint.version == installed_version()
    shown = {name: str(value) for name, value in endpoint.as_json().items() if name != "token"}
    assert report == {"ready": True, **shown}
    assert starting is not None  # free for the next start, which finds this supervisor
    starting.release()
    assert not (home / "endpoint.json").exists()
    for name in ("manager", "dispatcher", "trial-runner"):
        assert (home / "log" / f"{name}.log").read_text() == "stopped\n"


def test_supervisor_that_is_stopped_before_it_is_ready_reports_nothing(tmp_path: Path) -> None:
    with supervised(tmp_path, STOPPING_SERVICE) as (process, reader):
        report = os.read(reader, 65_536)
        status = process.wait(60)

    assert (report, status) == (b"", 0)
    assert not (tmp_path / "home" / "endpoint.json").exists()


def test_version_without_the_distribution_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(app, "version", fail)

    assert installed_version() == "unknown"


def test_configuration_of_the_bus_is_written_with_the_agents_of_the_moment(
    tmp_path: Path,
) -> None:
    held = HeldPorts.draw()
    agents = [(runner_user("nni-abcd1234-p-1", "p", "nni-abcd1234-p-1"), "its-password")]
    port = BusPort(held, make_plan(Settings(tmp_path), held.numbers), lambda: agents)
    port.commands()
    assert "its-password" in (tmp_path / "nats.conf").read_text()
    agents.clear()

    port.write_bus_config()

    assert "its-password" not in (tmp_path / "nats.conf").read_text()
    held.close()
