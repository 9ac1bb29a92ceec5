import os
import signal
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from svc_common.clock import ManualClock
from svc_trial_runner.fleet.adapters.isolated.adapter import CallLimits, IsolatedAdapter
from svc_trial_runner.fleet.domain.agents import AgentPhase, PlatformSection
from svc_trial_runner.fleet.domain.pool_events import (
    CleanPlatform,
    LaunchAgents,
    ListAgents,
    PlatformAction,
    TerminateAgents,
)
from svc_trial_runner.fleet.pools.platform_calls import LIMITS_S
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    FrontEndpoint,
    InstallationEndpoints,
    PlatformError,
)
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.isolated_platforms import METHODS, faulty_adapter, isolated_adapter
from tests.support.local_platforms import local_context

NAME = agent_name(1)


class OwnFront:
    async def open(self) -> FrontEndpoint:
        return FrontEndpoint("10.0.0.1:8081", "certificate")


class OwnBundles:
    async def bundle(self, python: tuple[int, int], platform_tag: str) -> Path:
        return Path(f"/bundles/{python[0]}.{python[1]}-{platform_tag}")


async def call(adapter: IsolatedAdapter, method: str) -> None:
    match method:
        case "launch":
            assert await adapter.launch([agent_order(NAME)]) == []
        case "terminate":
            await adapter.terminate([NAME])
        case _:
            await getattr(adapter, method)()


@pytest.mark.parametrize(
    ("method", "fault"),
    [*((method, "kill") for method in METHODS), ("launch", "kill after"), ("clean", "kill after")],
)
async def test_child_that_is_killed_in_a_call_fails_it_and_the_next_child_goes_on(
    tmp_path: Path, method: str, fault: str
) -> None:
    adapter = faulty_adapter(tmp_path, INSTALLATION, POOL, fault=fault, faultAt=method)
    try:
        with pytest.raises(PlatformError, match="local: its process was killed by signal 9"):
            await call(adapter, method)
        await call(adapter, method)
        await adapter.launch([agent_order(NAME)])
        agents = await adapter.agents()

        assert [agent.name for agent in agents] == [NAME]
        assert agents[0].phase is AgentPhase.RUNNING
    finally:
        await adapter.clean()
        await adapter.aclose()


async def test_restarted_child_is_prepared_if_its_predecessor_was(tmp_path: Path) -> None:
    adapter = faulty_adapter(tmp_path, INSTALLATION, POOL)
    try:
        await adapter.prepare()
        assert adapter.child_pid is not None
        os.kill(adapter.child_pid, signal.SIGKILL)
        await adapter.wait_changed()

        await adapter.agents()

        assert (tmp_path / f"prepared-{adapter.child_pid}").exists()
    finally:
        await adapter.aclose()


@pytest.mark.parametrize("fault", ["block", "wait"])
async def test_child_that_does_not_complete_a_call_in_time_is_killed_and_replaced(
    tmp_path: Path, fault: str
) -> None:
    context = local_context(tmp_path, INSTALLATION, POOL, {"fault": fault, "faultAt": "agents"})
    adapter = isolated_adapter(context, limits_s={"agents": 0.1}, cancel_s=0.1)
    try:
        with pytest.raises(PlatformError, match=r"'agents' within 0\.1 s; its process was killed"):
            await adapter.agents()
        await adapter.wait_changed()

        assert await adapter.capacity() == 1
    finally:
        await adapter.aclose()


@pytest.mark.parametrize(
    ("method", "action"),
    [
        ("agents", ListAgents),
        ("launch", LaunchAgents),
        ("terminate", TerminateAgents),
        ("clean", CleanPlatform),
    ],
)
def test_call_ends_long_enough_before_the_limit_of_the_fleet_to_be_reported(
    method: str, action: type[PlatformAction]
) -> None:
    limits = CallLimits()

    assert limits.by_method_s[method] + limits.cancel_s + 25 <= LIMITS_S[action]


async def test_child_that_ends_again_and_again_is_started_after_a_back_off(tmp_path: Path) -> None:
    clock = ManualClock()
    options = {"fault": "exit", "faultAt": "agents", "repeats": True}
    adapter = isolated_adapter(local_context(tmp_path, INSTALLATION, POOL, options), clock)
    try:
        for _ in range(2):
            with pytest.raises(PlatformError, match="ended with exit code 3"):
                await adapter.agents()
        with pytest.raises(PlatformError, match="2 times in a row; it is started again in 1 s"):
            await adapter.capacity()
        clock.advance(1.0)

        assert await adapter.capacity() == 1
    finally:
        await adapter.aclose()


async def test_words_and_remedy_of_a_refusal_arrive(tmp_path: Path) -> None:
    adapter = faulty_adapter(tmp_path, INSTALLATION, POOL, fault="refuse", faultAt="launch")
    try:
        with pytest.raises(PlatformError, match="no quota is left") as caught:
            await adapter.launch([agent_order(NAME)])
    finally:
        await adapter.aclose()

    assert (caught.value.remedy, caught.value.permanent) == ("ask for more", True)


async def test_child_asks_the_fleet_for_bundle_and_front(tmp_path: Path) -> None:
    context = AdapterContext(
        INSTALLATION,
        POOL,
        PlatformSection("local", {"asksFleet": True}),
        InstallationEndpoints("nats://127.0.0.1:1", "127.0.0.1:2"),
        OwnBundles(),
        tmp_path,
        OwnFront(),
    )
    adapter = isolated_adapter(context)
    try:
        with pytest.raises(PlatformError) as caught:
            await adapter.prepare()
    finally:
        await adapter.aclose()

    words = "/bundles/3.12-manylinux_2_17_x86_64 10.0.0.1:8081 certificate"
    assert str(caught.value) == words


async def test_secrets_are_neither_in_arguments_nor_in_the_environment_of_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_TOKEN", "token-of-the-bus")
    base = local_context(tmp_path, INSTALLATION, POOL)
    section = PlatformSection("local", {"showsProcess": True}, {"password": "hidden-word"})
    context = AdapterContext(
        base.installation, base.pool, section, base.endpoints, base.bundles, tmp_path, base.front
    )
    adapter = isolated_adapter(context)
    try:
        with pytest.raises(PlatformError) as caught:
            await adapter.prepare()
    finally:
        await adapter.aclose()

    shown = str(caught.value)
    assert shown.count("hidden-word") == 1  # the adapter's own, which came over the socket
    assert "token-of-the-bus" not in shown


async def test_end_of_the_child_wakes_the_wait_for_changes(tmp_path: Path) -> None:
    adapter = faulty_adapter(tmp_path, INSTALLATION, POOL)
    try:
        assert await adapter.agents() == []
        assert adapter.child_pid is not None
        os.kill(adapter.child_pid, signal.SIGKILL)

        await adapter.wait_changed()

        assert adapter.child_pid is None
    finally:
        await adapter.aclose()


async def test_closed_adapter_starts_no_child(tmp_path: Path) -> None:
    adapter = faulty_adapter(tmp_path, INSTALLATION, POOL)
    await adapter.aclose()
    await adapter.aclose()

    with pytest.raises(PlatformError, match="closed"):
        await adapter.agents()
    assert adapter.child_pid is None


async def test_child_that_cannot_open_its_adapter_is_started_after_a_back_off(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    clock.advance(100.0)
    command = (sys.executable, "-S", "-c", "raise SystemExit(4)")
    context = local_context(tmp_path, INSTALLATION, POOL)
    adapter = IsolatedAdapter(context, command, clock)
    for _ in range(2):
        with pytest.raises(PlatformError, match=r"platform local: its process ended .* code 4"):
            await adapter.agents()

    with pytest.raises(PlatformError, match="2 times in a row") as caught:
        await adapter.agents()

    assert caught.value.remedy == "the log of the fleet says why"
    assert adapter.child_pid is None
    await adapter.aclose()


async def test_check_and_clean_up_of_a_restarted_child_need_no_preparation(tmp_path: Path) -> None:
    adapter = faulty_adapter(tmp_path, INSTALLATION, POOL)
    try:
        await adapter.prepare()
        assert adapter.child_pid is not None
        os.kill(adapter.child_pid, signal.SIGKILL)
        await adapter.wait_changed()

        await adapter.check()
        await adapter.leftovers()
        await adapter.clean_rest()

        unprepared = tmp_path / f"prepared-{adapter.child_pid}"
        assert not unprepared.exists()
        await adapter.capacity()
        assert unprepared.exists()
        unprepared.unlink()
        await adapter.capacity()
        assert not unprepared.exists()  # once for each child
    finally:
        await adapter.aclose()


async def test_child_is_not_prepared_before_the_adapter_was(tmp_path: Path) -> None:
    adapter = faulty_adapter(tmp_path, INSTALLATION, POOL)
    try:
        await adapter.capacity()

        assert not (tmp_path / f"prepared-{adapter.child_pid}").exists()
    finally:
        await adapter.aclose()


async def test_wait_for_changes_without_a_child_ends_at_once(tmp_path: Path) -> None:
    adapter = faulty_adapter(tmp_path, INSTALLATION, POOL)

    await adapter.wait_changed()

    assert adapter.child_pid is None
    await adapter.aclose()


async def test_child_ends_with_its_adapter(tmp_path: Path) -> None:
    adapter = faulty_adapter(tmp_path, INSTALLATION, POOL)
    await adapter.capacity()
    pid = adapter.child_pid
    assert pid is not None

    await adapter.aclose()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_kill_of_a_child_that_hangs_is_logged_with_the_call(tmp_path: Path) -> None:
    context = local_context(tmp_path, INSTALLATION, POOL, {"fault": "block", "faultAt": "agents"})
    adapter = isolated_adapter(context, limits_s={"agents": 0.1}, cancel_s=0.1)
    try:
        with capture_logs() as lines, pytest.raises(PlatformError):
            await adapter.agents()
    finally:
        await adapter.aclose()

    killed = [line for line in lines if line["event"] == "child process killed"]
    assert [line["call"] for line in killed] == ["agents"]
