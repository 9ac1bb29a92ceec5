"""Adapter of the platform `remote` beyond the conformance suite of platforms."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

pytest.importorskip("asyncssh", reason="the extra remote is not installed")

from svc_trial_runner.agent_settings import ConnectionKind
from svc_trial_runner.fleet.adapters.remote.adapter import RemoteAdapter
from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformAgent, PlatformSection
from svc_trial_runner.fleet.ports import PlatformError
from svc_trial_runner.fleet.testing import agent_name, agent_order
from tests.support.local_platforms import front_context
from tests.support.remote_machines import Machines

ONE = agent_name(1)
TWO = agent_name(2)


def run(folder: Path, work: Callable[[Machines], Awaitable[None]], count: int = 1) -> None:
    """Run work with machines, which are closed."""
    machines = Machines(folder, count)

    async def case() -> None:
        async with asyncio.timeout(120):
            await work(machines)

    try:
        machines.start()
        asyncio.run(case())
    finally:
        machines.close()


async def until(
    adapter: RemoteAdapter, holds: Callable[[list[PlatformAgent]], bool]
) -> list[PlatformAgent]:
    """Wait until the list of agents has a property; return it."""
    while not holds(agents := await adapter.agents()):
        await adapter.wait_changed()
    return agents


def test_settings_of_an_agent_are_complete(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        entry = machines.entry(slots=3, setupLines=["true"], pythonPath="/opt/py/bin")
        adapter = machines.adapter(entry)
        await adapter.prepare()
        assert await adapter.launch([agent_order(ONE)]) == []
        settings = await asyncio.to_thread(machines.settings, ONE)
        await adapter.aclose()

        assert (settings.name, settings.pool) == (str(ONE), ONE.pool)
        assert (settings.slots, settings.max_trials, settings.platform) == (3, None, "remote")
        assert (settings.setup_lines, settings.python_path) == (("true",), "/opt/py/bin")
        assert settings.connection.kind is ConnectionKind.SOCKETS
        assert (Path(settings.connection.folder) / "current").exists()
        assert settings.home.startswith(str(machines.agent_folder(ONE)))
        # Of the ten seconds until it is killed, two are left for the end of its process.
        assert settings.grace_s == 8

    run(tmp_path, work)


def test_no_secret_is_on_a_command_line(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        adapter = machines.adapter()
        order = agent_order(ONE)
        secret = replace(order.credentials, bus_password="secret-77", manager_token="secret-78")
        await adapter.prepare()
        await adapter.launch([replace(order, credentials=secret)])
        await adapter.aclose()

        lines = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
        assert any(str(ONE) in line for line in lines)
        assert not any("secret-7" in line for line in lines)

    run(tmp_path, work)


def test_without_reuse_each_slot_is_an_agent_of_one_trial(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        adapter = machines.adapter(machines.entry(slots=2), options={"reuseMode": False})
        await adapter.prepare()
        assert await adapter.capacity() == 2
        failures = await adapter.launch([agent_order(agent_name(number)) for number in (1, 2, 3)])
        settings = await asyncio.to_thread(machines.settings, TWO)
        await adapter.aclose()

        assert [failure.name for failure in failures] == [agent_name(3)]
        assert (settings.slots, settings.max_trials) == (1, 1)

    run(tmp_path, work)


def test_without_reuse_and_slots_the_demand_is_the_limit_unless_trials_take_gpus(
    tmp_path: Path,
) -> None:
    async def work(machines: Machines) -> None:
        adapter = machines.adapter(options={"reuseMode": False})
        assert await adapter.capacity() is None
        await adapter.prepare()
        orders = [agent_order(agent_name(number)) for number in (1, 2)]
        with_gpus = [replace(order, gpus_per_trial=1) for order in orders]
        failures = await adapter.launch(with_gpus)
        assert [failure.name for failure in failures] == [TWO]
        assert await adapter.launch(orders) == []
        await adapter.clean()
        await adapter.aclose()

    run(tmp_path, work)


def test_bundle_is_sent_once_to_each_machine(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        first = machines.adapter()
        await first.prepare()
        await first.aclose()
        (unpacked,) = (machines.homes[0] / ".nni/bundles").iterdir()
        made = unpacked.stat().st_ctime_ns
        second = machines.adapter()
        await second.prepare()
        await second.aclose()

        assert unpacked.stat().st_ctime_ns == made

    run(tmp_path, work)


def test_bundle_that_was_removed_meanwhile_is_sent_again(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        adapter = machines.adapter()
        await adapter.prepare()
        (unpacked,) = (machines.homes[0] / ".nni/bundles").iterdir()
        unpacked.rename(tmp_path / "elsewhere")

        assert await adapter.launch([agent_order(ONE)]) == []
        await adapter.aclose()

    run(tmp_path, work)


def test_check_names_every_machine_with_a_problem(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        adapter = machines.adapter(
            machines.entry(0),
            machines.entry(1, password="wrong"),
            machines.entry(0, host="localhost"),
            {"host": "127.0.0.1", "port": 9, "user": "ann", "password": "x"},
        )
        machines.known_hosts.write_text(
            machines.known_hosts.read_text()
            + machines.known_hosts.read_text().replace("127.0.0.1", "localhost")
        )
        problems = await adapter.check()
        await adapter.aclose()

        assert sorted(problem.field for problem in problems) == [
            "machineList[1].password",
            "machineList[2].host",
            "machineList[3].port",
        ]
        assert not (machines.homes[0] / ".nni/agents").exists() or not list(
            (machines.homes[0] / ".nni/agents").iterdir()
        )

    run(tmp_path, work, count=2)


def test_broken_section_starts_nothing(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        adapter = machines.adapter({"host": "127.0.0.1"})

        assert [problem.field for problem in await adapter.check()] == ["machineList[0].user"]
        for call in (adapter.prepare(), adapter.launch([agent_order(ONE)]), adapter.agents()):
            with pytest.raises(PlatformError, match="must be given") as caught:
                await call
            assert caught.value.permanent
        await adapter.clean()

    run(tmp_path, work)


def test_machine_that_is_away_holds_up_no_other(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        machines.servers[0].kill()
        adapter = machines.adapter()
        problems = await adapter.check()
        await adapter.prepare()
        failures = await adapter.launch([agent_order(ONE), agent_order(TWO)])

        assert [(one.field, one.permanent) for one in problems] == [("machineList[0].port", False)]
        assert [failure.name for failure in failures] == [TWO]
        assert "no SSH server listens" in failures[0].reason
        assert not failures[0].permanent
        assert [agent.name for agent in await adapter.agents()] == [ONE]
        await adapter.clean()
        await adapter.aclose()

    run(tmp_path, work, count=2)


def test_no_machine_at_all_is_an_error(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        machines.servers[0].kill()
        adapter = machines.adapter()

        for call in (adapter.prepare(), adapter.agents(), adapter.launch([agent_order(ONE)])):
            with pytest.raises(PlatformError, match="no SSH server listens"):
                await call
        await adapter.terminate([ONE])
        await adapter.aclose()

    run(tmp_path, work)


def test_agent_of_a_machine_that_goes_away_and_comes_back_is_the_same(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        adapter = machines.adapter()
        await adapter.prepare()
        await adapter.launch([agent_order(ONE)])
        await until(adapter, lambda agents: agents[0].phase is AgentPhase.RUNNING)
        process = (machines.agent_folder(ONE) / "process.json").read_text()
        machines.servers[0].kill()

        lost = await until(adapter, lambda agents: bool(agents[0].reason))
        assert lost[0].phase is AgentPhase.RUNNING
        with pytest.raises(PlatformError):
            await adapter.terminate([ONE])
        second = machines.adapter()  # of a fleet that was killed while the machine is away
        assert [agent.name for agent in await second.agents()] == [ONE]
        assert await second.launch([agent_order(ONE)]) == []
        machines.servers[0].start()
        await until(second, lambda agents: not agents[0].reason)

        assert (machines.agent_folder(ONE) / "process.json").read_text() == process
        await second.clean()
        await adapter.aclose()
        await second.aclose()

    run(tmp_path, work)


def test_clean_leaves_no_process_folder_or_socket(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        adapter = machines.adapter()
        await adapter.prepare()
        await adapter.launch([agent_order(ONE)])
        settings = await asyncio.to_thread(machines.settings, ONE)
        sockets = Path(settings.connection.folder)
        assert sockets.exists()

        await adapter.clean()
        await adapter.aclose()

        assert not sockets.exists()
        assert list((machines.homes[0] / ".nni/agents").iterdir()) == []
        lines = [one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])]
        assert not any(str(machines.homes[0]) in word for line in lines for word in line)

    run(tmp_path, work)


def unreached(folder: Path, *entries: dict[str, object], **options: object) -> RemoteAdapter:
    """Return an adapter of machines on which no SSH server listens."""
    section = PlatformSection("remote", {"machineList": list(entries), **options})
    context = front_context(folder, "0123abcd", "exp-a", section)
    return RemoteAdapter(context, folder / "accepted", [])


def entry(number: int, **fields: object) -> dict[str, object]:
    """Return a machine at a port of privileged programs that nothing listens on."""
    return {"host": f"127.0.0.{number}", "port": 9, "user": "ann", "password": "x", **fields}


@pytest.mark.parametrize(
    ("options", "capacity"),
    [
        ({}, 2),
        ({"slots": 3}, 2),
        ({"reuseMode": False}, None),
        ({"reuseMode": False, "slots": 3}, 6),
        ({"reuseMode": False, "slots": 3.0}, 6),
        ({"reuseMode": False, "slots": 1}, 2),
        ({"reuseMode": False, "slots": 0}, None),
        ({"reuseMode": False, "slots": 1.5}, None),
        ({"reuseMode": False, "slots": True}, None),
        ({"reuseMode": False, "slots": math.inf}, None),
        ({"reuseMode": False, "slots": math.nan}, None),
        ({"reuseMode": False, "slots": "3"}, None),
        ({"reuseMode": None, "slots": 3}, 2),
    ],
)
async def test_capacity_is_one_agent_a_machine_or_one_a_slot_without_reuse(
    tmp_path: Path, options: dict[str, object], capacity: int | None
) -> None:
    adapter = unreached(tmp_path, entry(1), entry(2), **options)

    assert await adapter.capacity() == capacity


async def test_slots_of_a_machine_win_over_those_of_the_section(tmp_path: Path) -> None:
    adapter = unreached(tmp_path, entry(1, slots=5), entry(2), reuseMode=False, slots=2)

    assert await adapter.capacity() == 7


async def test_machine_without_slots_makes_the_capacity_unknown(tmp_path: Path) -> None:
    adapter = unreached(tmp_path, entry(1, slots=5), entry(2), reuseMode=False)

    assert await adapter.capacity() is None


async def test_launch_of_nothing_and_end_of_nothing_contact_no_machine(tmp_path: Path) -> None:
    adapter = unreached(tmp_path, {"host": "127.0.0.1"})

    assert await adapter.launch([]) == []
    await adapter.terminate([])


async def test_first_three_machines_that_are_away_are_the_reason(tmp_path: Path) -> None:
    adapter = unreached(tmp_path, *(entry(number) for number in range(1, 5)))
    async with asyncio.timeout(60):
        with pytest.raises(PlatformError) as caught:
            await adapter.prepare()
        with pytest.raises(PlatformError):
            await adapter.leftovers()
        with pytest.raises(PlatformError):
            await adapter.clean_rest()
    await adapter.aclose()

    parts = caught.value.message.split("; ")
    assert [part.partition(":")[0] for part in parts] == [
        f"ann@127.0.0.{number}" for number in (1, 2, 3)
    ]
    assert caught.value.remedy == "start sshd on the machine, or correct the port"
    assert not caught.value.permanent


async def test_machine_that_is_lost_wakes_the_wait_for_changes_once(tmp_path: Path) -> None:
    adapter = unreached(tmp_path, entry(1))
    async with asyncio.timeout(60):
        with pytest.raises(PlatformError):
            await adapter.agents()

        await adapter.wait_changed()

    again = asyncio.ensure_future(adapter.wait_changed())
    await asyncio.sleep(0)
    assert not again.done()
    again.cancel()
    await adapter.aclose()


async def test_cleaning_of_machines_that_never_had_an_agent_needs_none_of_them(
    tmp_path: Path,
) -> None:
    adapter = unreached(tmp_path, entry(1))

    async with asyncio.timeout(60):
        await adapter.clean()
        await adapter.terminate([ONE])
    await adapter.aclose()

    assert list(tmp_path.iterdir()) == []


def test_launch_of_an_agent_wakes_the_wait_for_changes(tmp_path: Path) -> None:
    async def work(machines: Machines) -> None:
        adapter = machines.adapter()
        await adapter.prepare()
        await adapter.wait_changed()  # its machine was found
        assert await adapter.launch([agent_order(ONE)]) == []

        await adapter.wait_changed()

        await adapter.clean()
        await adapter.aclose()

    run(tmp_path, work)
