"""Parts of an agent that a fleet has started; the whole is started by the integration tests."""

import asyncio
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from svc_common.clock import ManualClock, SystemClock
from svc_common.errors import UnavailableError
from svc_common.lifecycle import Service
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_common.storage.shared_storage import LocalMount, SharedStorage, StorageKind
from svc_trial_runner.adapters.agent_folder import trial_sdk_folder
from svc_trial_runner.adapters.environments import FileEnvironments
from svc_trial_runner.adapters.login_environment import LoginEnvironments
from svc_trial_runner.agent.silence import (
    REFUSED_EXIT_CODE,
    REFUSED_LIMIT_S,
    SILENCE_EXIT_CODE,
)
from svc_trial_runner.agent_settings import AgentSettings, ConnectionKind, ConnectionSettings
from svc_trial_runner.domain.gpus import NO_MACHINE_RULES, MachineGpuRules
from svc_trial_runner.fleet.adapters.bundles.worker_processes import MARK
from svc_trial_runner.settings import settings_of_fleet
from svc_trial_runner.wiring import (
    AGENT_FOLDER_VARIABLE,
    bus_settings,
    drain_after,
    drain_on_interrupt,
    experiments_root,
    machine_gpu_rules,
    open_environments,
    open_home,
    open_shared_storage,
    stop_when_refused,
    stop_when_silent,
    warm_program,
)
from tests.unit.services.trial_runner.conftest import Bench


def fleet(
    home: Path, kind: ConnectionKind = ConnectionKind.SOCKETS, **changes: object
) -> AgentSettings:
    connection = ConnectionSettings(
        kind, "nats://127.0.0.1:4222", "127.0.0.1:7501", str(home / "sockets")
    )
    fields = {
        "name": "one",
        "pool": "pool",
        "platform": "slurm",
        "home": str(home / "one"),
        "connection": connection,
        "bus_user": "agent",
        "bus_password": "p",
        "manager_token": "t",
        **changes,
    }
    return AgentSettings(**fields)  # type: ignore[arg-type] # fields of one test


def test_bus_is_found_anew_for_each_connection_through_sockets(tmp_path: Path) -> None:
    found = bus_settings(settings_of_fleet(fleet(tmp_path)), "one")
    (tmp_path / "sockets").mkdir()
    assert found.socket is not None
    for name in ("c1", "c2"):
        (tmp_path / "sockets/current").write_text(name)

        assert found.socket() == tmp_path / f"sockets/{name}/bus.sock"
    assert (found.user, found.owns_streams) == ("agent", False)


def test_bus_at_an_address_makes_no_streams_either(tmp_path: Path) -> None:
    found = bus_settings(settings_of_fleet(fleet(tmp_path, ConnectionKind.DIRECT)), "one")

    assert (found.url, found.socket, found.owns_streams) == ("nats://127.0.0.1:4222", None, False)


@pytest.mark.parametrize("removes", [True, False])
async def test_folder_is_removed_at_the_end_if_the_fleet_wants_it(
    tmp_path: Path, *, removes: bool
) -> None:
    service = Service()
    open_home(service, settings_of_fleet(fleet(tmp_path, removes_home=removes)))

    await service.aclose()

    assert (tmp_path / "one").exists() is not removes


def test_agent_of_a_fleet_has_its_own_copy_of_the_api_of_trials(tmp_path: Path) -> None:
    settings = settings_of_fleet(fleet(tmp_path))

    environments = open_environments(settings)

    program = warm_program(settings)
    assert isinstance(environments, LoginEnvironments)
    assert program is not None
    assert program.is_file()
    assert program.is_relative_to(settings.work_directory)
    assert warm_program(replace(settings, warm=False)) is None


async def test_mount_does_not_end_with_the_processes_of_the_agent_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, program = tmp_path / "there", tmp_path / "bin" / "blobfuse2"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\nmkdir -p {place}/nni/e1 && printf abc >{place}/nni/e1/storage-mark\n"
        f"env >{tmp_path}/environment\n"
    )
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv(MARK, str(tmp_path / "one"))
    storage = SharedStorage(
        StorageKind.AZURE_BLOB, "/here", str(place), LocalMount.USER, mark="abc"
    )
    settings = settings_of_fleet(fleet(tmp_path, pool="exp-e1", shared_storage=storage))
    settings.work_directory.mkdir(parents=True)
    service = Service()

    mounted = open_shared_storage(service, settings)
    assert mounted is not None
    await mounted.ensure()
    await service.aclose()

    variables = (tmp_path / "environment").read_text("utf-8").splitlines()
    assert [one for one in variables if one.startswith(f"{AGENT_FOLDER_VARIABLE}=")] == []
    assert any(one.startswith("PATH=") for one in variables)
    assert AGENT_FOLDER_VARIABLE == MARK


async def test_agent_without_a_bus_stops_with_a_code_of_its_own() -> None:
    service, clock, broker = Service(), ManualClock(), InMemoryBroker()
    async with InMemoryBus(broker) as bus:
        broker.stop()
        stopping = asyncio.ensure_future(stop_when_silent(service, bus, clock, 60.0))
        for _ in range(100):  # turns of the loop, of which a few are needed
            await asyncio.sleep(0)
        assert (service.exit_code, clock.sleepers) == (0, 1)

        clock.advance(60.0)
        await stopping

    assert service.exit_code == SILENCE_EXIT_CODE


async def test_agent_whose_credentials_are_revoked_stops_with_a_code_of_its_own() -> None:
    service = Service()
    limits: list[float] = []

    async def refused(limit_s: float) -> None:
        limits.append(limit_s)

    with capture_logs() as lines:
        await stop_when_refused(service, refused)

    assert (service.exit_code, limits) == (REFUSED_EXIT_CODE, [REFUSED_LIMIT_S])
    assert [line["event"] for line in lines] == ["credentials revoked"]


async def test_agent_whose_time_is_over_drains(bench: Bench) -> None:
    agent, clock = bench.agent(), ManualClock()
    draining = asyncio.ensure_future(drain_after(agent, clock, 60.0))
    await asyncio.sleep(0)
    assert not agent.draining

    clock.advance(60.0)
    await draining

    assert agent.draining


async def test_drain_at_the_end_of_the_time_is_logged_with_it(bench: Bench) -> None:
    with capture_logs() as lines:
        await drain_after(bench.agent(), SystemClock(), 0.0)

    assert [(line["event"], line["lifetime_s"]) for line in lines] == [("agent drains", 0.0)]


async def test_agent_without_a_limit_of_time_stays(bench: Bench) -> None:
    agent = bench.agent()

    await drain_after(agent, ManualClock(), None)

    assert not agent.draining


async def test_interrupts_drain_a_joined_agent_and_then_stop_it(
    bench: Bench, tmp_path: Path
) -> None:
    agent, service = bench.agent(), Service()
    loop = asyncio.get_running_loop()
    drain_on_interrupt(service, agent, fleet(tmp_path, platform="joined"))
    try:
        signal.raise_signal(signal.SIGINT)
        await asyncio.wait_for(agent.wait_draining(), 30)
        drained, takes_work = agent.draining, not service.failed
        stopping = asyncio.ensure_future(service.wait_stopping())
        await asyncio.sleep(0)
        stopped = stopping.done()
        signal.raise_signal(signal.SIGINT)
        await asyncio.wait_for(stopping, 30)
    finally:
        loop.remove_signal_handler(signal.SIGINT)

    assert (drained, takes_work, stopped) == (True, True, False)
    assert service.exit_code == 0


async def test_interrupt_of_another_agent_has_its_usual_effect(
    bench: Bench, tmp_path: Path
) -> None:
    before = signal.getsignal(signal.SIGINT)

    drain_on_interrupt(Service(), bench.agent(), fleet(tmp_path))

    assert signal.getsignal(signal.SIGINT) is before
    assert not asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)


async def test_experiments_are_in_the_folder_of_work_or_on_the_shared_storage(
    tmp_path: Path,
) -> None:
    storage = SharedStorage(StorageKind.NFS, "/here", str(tmp_path / "there"), LocalMount.USER)
    settings = settings_of_fleet(fleet(tmp_path, pool="exp-e1", shared_storage=storage))
    service = Service()

    mounted = open_shared_storage(service, settings)
    await service.aclose()

    assert mounted is not None
    assert experiments_root(settings, mounted) == mounted.root
    assert experiments_root(settings, None) == settings.work_directory / "experiments"
    assert open_shared_storage(service, settings_of_fleet(fleet(tmp_path))) is None


def test_gpus_of_a_batch_job_are_a_rule_unless_the_fleet_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")

    assert machine_gpu_rules(fleet(tmp_path)) == MachineGpuRules((2, 3))
    ruled = fleet(tmp_path, gpu_indices=(1,), use_active_gpu=True, trials_per_gpu=2)
    assert machine_gpu_rules(ruled) == MachineGpuRules((1,), True, 2)
    assert machine_gpu_rules(None) == NO_MACHINE_RULES


class ClosedBus(InMemoryBus):
    """Bus that is closed already."""

    async def wait_connected(self, connected: bool = True) -> None:
        raise UnavailableError("the bus is closed")


async def test_agent_that_has_closed_its_bus_is_not_silent() -> None:
    service, clock = Service(), ManualClock()

    await stop_when_silent(service, ClosedBus(InMemoryBroker()), clock, 60.0)

    assert (service.exit_code, clock.sleepers) == (0, 0)


async def test_folder_of_an_agent_that_has_failed_stays(tmp_path: Path) -> None:
    service = Service()
    open_home(service, settings_of_fleet(fleet(tmp_path, removes_home=True)))

    async def fail() -> None:
        raise RuntimeError("a defect")

    service.tasks.start(fail(), "defect")
    await asyncio.wait_for(service.tasks.drain(), 30)
    await service.aclose()

    assert service.failed
    assert (tmp_path / "one").exists()


def test_agent_of_the_installation_has_the_environments_of_clients(tmp_path: Path) -> None:
    settings = replace(settings_of_fleet(fleet(tmp_path)), fleet=None)

    program = warm_program(settings)

    assert isinstance(open_environments(settings), FileEnvironments)
    assert program == trial_sdk_folder() / "warm.py"
    assert warm_program(replace(settings, warm=False)) is None


def test_bus_of_an_installation_has_its_token_and_copies(tmp_path: Path) -> None:
    settings = replace(
        settings_of_fleet(fleet(tmp_path, ConnectionKind.DIRECT)), token="secret", replicas=3
    )

    found = bus_settings(settings, "one")

    assert (found.name, found.replicas) == ("one", 3)
