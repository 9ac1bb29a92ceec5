import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from stat import S_IMODE

import pytest

from svc_standalone.app import BusPort, make_plan, prepare_home
from svc_standalone.commands import BUS
from svc_standalone.held_ports import HeldPorts
from svc_standalone.settings import Settings


def test_home_is_private_and_damaged_places_are_repaired(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    (home / "log").write_text("no folder")

    prepare_home(Settings(home))

    assert S_IMODE(home.stat().st_mode) == 0o700
    assert (home / "log").is_dir()


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
