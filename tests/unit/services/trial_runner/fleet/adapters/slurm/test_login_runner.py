"""Login node whose library is imported late."""

import sys
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.remote.machines import HostKeyPolicy, Machine
from svc_trial_runner.fleet.adapters.slurm import login_runner
from svc_trial_runner.fleet.adapters.slurm.login_runner import LoginRunner
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext, InstallationEndpoints, PlatformError
from tests.support.ports import free_port
from tests.support.sleeping_agents import SleepingAgents


def runner(folder: Path, machine: Machine | None = None) -> LoginRunner:
    """Return the runner of a login node; without one, of a node that has no SSH server."""
    context = AdapterContext(
        "0123abcd",
        "pool",
        PlatformSection("slurm", {}),
        InstallationEndpoints("nats://127.0.0.1:4222", "127.0.0.1:50051"),
        SleepingAgents(folder),
        folder,
        NoFront(),
    )
    closed = Machine(None, "127.0.0.1", "ann", free_port())
    return LoginRunner(machine or closed, context, lambda: None)


async def test_missing_library_is_an_error_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "svc_trial_runner.fleet.adapters.slurm.login_node", None)
    one = runner(tmp_path)

    with pytest.raises(PlatformError, match="package that is not installed") as caught:
        await one.run(["true"], limit_s=1.0)

    assert login_runner.REQUIREMENT in caught.value.remedy
    await one.aclose()


async def test_nothing_is_imported_before_it_is_used(tmp_path: Path) -> None:
    one = runner(tmp_path)

    await one.aclose()

    assert (one._node, one.relay_address, one.is_here) == (None, "", False)


async def test_command_on_the_login_node_reads_its_content(tmp_path: Path) -> None:
    pytest.importorskip("asyncssh", reason="the extra remote is not installed")
    from tests.support.remote_machines import PASSWORD, USER, Machines

    machines = Machines(tmp_path)
    machines.start()
    machine = Machine(
        None,
        "127.0.0.1",
        USER,
        machines.servers[0].port,
        password=PASSWORD,
        host_key_policy=HostKeyPolicy.ACCEPT_NEW,
    )
    one = runner(tmp_path, machine)
    try:
        result = await one.run(["cat"], content=[b"i", b"n"], limit_s=30.0)
    finally:
        await one.aclose()
        machines.close()

    assert (result.exit_status, result.output) == (0, b"in")


async def test_errors_are_those_of_the_login_node(tmp_path: Path) -> None:
    pytest.importorskip("asyncssh", reason="the extra remote is not installed")
    one = runner(tmp_path)
    try:
        with pytest.raises(PlatformError, match="port is not open"):
            await one.connect()
        with pytest.raises(PlatformError, match="port is not open"):
            await one.run(["true"], limit_s=1.0)
        with pytest.raises(PlatformError, match="port is not open"):
            await one.open_relay("python3", 8081, [])
    finally:
        await one.aclose()
