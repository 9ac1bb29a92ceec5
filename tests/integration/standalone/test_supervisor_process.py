"""The supervisor as a process, with stand-ins for the services beside a real bus."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.local_shape import LocalShape, children
from tests.support.servers import require_binary
from tests.support.wait import until

STAND_IN = textwrap.dedent(
    """
    import sys
    from svc_common import environment
    from svc_common.access.security import read_security_settings
    from svc_common.lifecycle import Service, run_process
    from svc_common.messaging.nats_bus import NatsBus
    from svc_common.messaging.nats_settings import NatsSettings

    print("fork" if "svc_standalone.fork_server" in sys.modules else "program", flush=True)

    async def build(service):
        settings = NatsSettings.confined(
            environment.text("NNI_NATS_URL"), read_security_settings(), token="", name="stand-in"
        )
        await service.adapters.enter_async_context(NatsBus(settings))
        return {}

    sys.exit(run_process("stand-in", build))
    """
)


@pytest.fixture
def shape(tmp_path: Path) -> LocalShape:
    require_binary("nats-server")
    packages = tmp_path / "packages"
    for name in ("svc_manager", "svc_dispatcher", "svc_trial_runner"):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").touch()
        (packages / name / "__main__.py").write_text(STAND_IN)
    return LocalShape(tmp_path, {"PYTHONPATH": str(packages)})


def ended(pid: int) -> bool:
    """Wait for the end of a process that is not our child."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    import select

    readable, _, _ = select.select([descriptor], [], [], 60)
    os.close(descriptor)
    return bool(readable)


def test_up_says_where_and_down_ends_everything(shape: LocalShape) -> None:
    shape.start()
    endpoint = shape.endpoint()
    pids = [int(endpoint["pid"]), *shape.pids().values()]

    assert len(pids) == 5
    assert endpoint["http"].startswith("http://127.0.0.1:")
    shape.stop()
    assert all(ended(pid) for pid in pids)
    assert not (shape.home / "endpoint.json").exists()


def test_two_starters_get_the_same_services(shape: LocalShape) -> None:
    with ThreadPoolExecutor() as pool:
        for started in [pool.submit(shape.start) for _ in range(3)]:
            started.result()

    assert len(children(int(shape.endpoint()["pid"]))) == 4
    shape.stop()


def test_children_end_with_a_killed_supervisor_and_the_next_up_starts_anew(
    shape: LocalShape,
) -> None:
    shape.start()
    first = shape.endpoint()
    pids = list(shape.pids().values())

    os.kill(int(first["pid"]), signal.SIGKILL)

    assert all(ended(pid) for pid in pids)
    shape.start()
    assert shape.endpoint()["pid"] != first["pid"]
    shape.stop()


def test_bus_that_was_killed_comes_back_on_its_port(shape: LocalShape) -> None:
    shape.start()
    before = shape.pids()

    shape.kill("nats")
    assert ended(before["nats"])

    # The stand-ins reconnect; a bus on another port would leave the old address dead.
    code = textwrap.dedent(
        """
        import asyncio, json, sys
        from svc_common.messaging.nats_bus import NatsBus
        from svc_common.messaging.nats_settings import NatsSettings

        async def main(endpoint):
            settings = NatsSettings(endpoint["nats"], user="operator", password=endpoint["token"])
            async with asyncio.timeout(60), NatsBus(settings):
                pass

        asyncio.run(main(json.loads(sys.argv[1])))
        """
    )
    shape.run([sys.executable, "-c", code, json.dumps(shape.endpoint())])
    assert {name: pid for name, pid in shape.pids().items() if name != "nats"} == {
        name: pid for name, pid in before.items() if name != "nats"
    }
    shape.stop()


def test_services_are_forks_at_first_and_programs_when_they_are_restarted(
    shape: LocalShape,
) -> None:
    def starts(service: str) -> list[str]:
        lines = (shape.home / "log" / f"{service}.log").read_text().splitlines()
        return [line for line in lines if line in {"fork", "program"}]

    shape.start()
    before = shape.pids()
    first = [starts(service) for service in ("manager", "dispatcher", "trial-runner")]

    shape.kill("manager")

    assert first == [["fork"]] * 3
    until(lambda: starts("manager") == ["fork", "program"], 60, "a restart of the manager")
    until(lambda: shape.pids().get("manager") not in {None, before["manager"]}, 60, "its process")
    assert {**shape.pids(), "manager": 0} == {**before, "manager": 0}
    shape.stop()


def test_service_that_cannot_start_is_a_clear_error_and_leaves_nothing(
    shape: LocalShape, tmp_path: Path
) -> None:
    broken = tmp_path / "packages" / "svc_manager" / "__main__.py"
    broken.write_text("raise SystemExit('the licence of the moon has expired')")

    done = shape.run([sys.executable, "-m", "svc_standalone", "up"], check=False)

    assert done.returncode == 1
    assert "manager does not start: the licence of the moon has expired" in done.stderr
    assert not (shape.home / "endpoint.json").exists()


def test_status_is_json(shape: LocalShape) -> None:
    command = [sys.executable, "-m", "svc_standalone", "status"]
    before = json.loads(shape.run(command).stdout)

    shape.start()
    during = json.loads(shape.run(command).stdout)
    shape.stop()

    assert before == {"up": False}
    assert during["up"] is True
    assert "token" not in during


def test_services_outlive_the_terminal(shape: LocalShape) -> None:
    shape.start()
    pid = int(shape.endpoint()["pid"])

    os.kill(pid, signal.SIGHUP)
    done = subprocess.run(
        [sys.executable, "-m", "svc_standalone", "status"],
        env=shape.environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(done.stdout)["pid"] == pid
    shape.stop()


def test_damaged_files_of_the_installation_keep_nothing_from_starting(shape: LocalShape) -> None:
    shape.home.mkdir(mode=0o755)
    (shape.home / "log").write_text("no folder")
    (shape.home / "jetstream").write_text("no folder")
    (shape.home / "endpoint.json").write_bytes(b"\xff\xfe\x00")
    (shape.home / "nats.conf").mkdir()

    shape.start()

    assert shape.endpoint()["http"].startswith("http://127.0.0.1:")
    assert shape.home.stat().st_mode & 0o777 == 0o700
    shape.stop()
