import importlib.metadata
import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from stat import S_IMODE

import pytest

from svc_standalone.app import BusPort, installed_version, make_plan, prepare_home
from svc_standalone.commands import BUS
from svc_standalone.endpoint import SUPERVISOR_LOCK, Endpoint, Lock, write_endpoint
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
