import asyncio
import os

from svc_common.experiment_events.cause_text import wait_text
from svc_common.experiment_events.causes import WaitReason
from svc_trial_runner.adapters.gpu_devices import InMemoryGpuDevices
from svc_trial_runner.adapters.process_table import ProcProcessTable
from svc_trial_runner.attempts.gpu_allocation import GpuAllocator
from svc_trial_runner.domain.gpus import GpuAllocation, GpuDevice, GpuRequest, MachineGpuRules

STRANGER = 1
"""Number of a process that is never a descendant of this one."""


def desk(*devices: GpuDevice) -> tuple[GpuAllocator, InMemoryGpuDevices]:
    source = InMemoryGpuDevices(devices)
    return GpuAllocator(source, ProcProcessTable()), source


def request(trial_id: str, count: int | None = 1) -> GpuRequest:
    return GpuRequest("exp", trial_id, count)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_request_for_no_gpus_needs_no_driver() -> None:
    gpus, _ = desk()

    assert await gpus.acquire(request("one", None), print) == GpuAllocation(None)
    assert await gpus.acquire(request("two", 0), print) == GpuAllocation(())


async def test_freed_gpu_goes_to_the_longest_waiting_trial() -> None:
    gpus, _ = desk(GpuDevice(0, "a", 1))
    reasons: list[WaitReason] = []
    assert await gpus.acquire(request("one"), reasons.append) == GpuAllocation((0,))
    second = asyncio.create_task(gpus.acquire(request("two"), reasons.append))
    await settle()
    third = asyncio.create_task(gpus.acquire(request("three"), reasons.append))
    await settle()

    await gpus.release("exp", "one")

    assert await second == GpuAllocation((0,))
    assert not third.done()
    assert gpus.waiting
    assert gpus.holders_of(0) == ["two"]
    assert wait_text(reasons[0]) == "waiting for 1 GPU: 0 in use by trial one"
    gpus.give_up("exp", "three")
    assert await third is None


async def test_freed_gpu_goes_to_a_retried_trial_before_newer_ones() -> None:
    gpus, _ = desk(GpuDevice(0, "a", 1))
    await gpus.acquire(request("one"), print)
    second = asyncio.create_task(gpus.acquire(request("two"), print))
    await settle()
    again = GpuRequest("exp", "zero", 1, retried=True)
    retried = asyncio.create_task(gpus.acquire(again, print))
    await settle()

    await gpus.release("exp", "one")

    assert await retried == GpuAllocation((0,))
    assert not second.done()
    gpus.give_up("exp", "two")
    assert await second is None


async def test_hopeless_request_blocks_no_other() -> None:
    gpus, _ = desk(GpuDevice(0, "a", 1))
    reasons: list[WaitReason] = []
    hopeless = asyncio.create_task(gpus.acquire(request("one", 2), reasons.append))
    await settle()

    assert await gpus.acquire(request("two"), reasons.append) == GpuAllocation((0,))

    assert list(map(wait_text, reasons)) == ["waiting for 2 GPUs: this machine has 1"]
    gpus.give_up("exp", "one")
    assert await hopeless is None


async def test_stranger_on_a_gpu_is_noticed_when_it_goes() -> None:
    gpus, source = desk(GpuDevice(0, "a", 1, frozenset({STRANGER})))
    reasons: list[WaitReason] = []
    waiting = asyncio.create_task(gpus.acquire(request("one"), reasons.append))
    await settle()
    assert list(map(wait_text, reasons)) == ["waiting for 1 GPU: 0 in use by process 1"]

    source.replace([GpuDevice(0, "a", 1)])
    await gpus.recheck()

    assert await waiting == GpuAllocation((0,))


async def test_first_of_several_strangers_is_named() -> None:
    gpus, _ = desk(GpuDevice(3, "a", 1, frozenset({STRANGER, 2**30})))

    _, active = await gpus.devices()

    assert active == {3: "process 1"}


async def test_own_descendants_are_no_foreign_users() -> None:
    child = await asyncio.create_subprocess_exec("sleep", "30")
    gpus, _ = desk(GpuDevice(0, "a", 1, frozenset({child.pid})))

    _, active = await gpus.devices()

    child.kill()
    await child.wait()
    assert active == {}
    assert os.getpid() != STRANGER


async def test_reason_is_reported_again_only_if_it_changes() -> None:
    gpus, _ = desk(GpuDevice(0, "a", 1))
    reasons: list[WaitReason] = []
    await gpus.acquire(request("one"), reasons.append)
    waiting = asyncio.create_task(gpus.acquire(request("two"), reasons.append))
    await settle()

    await gpus.recheck()
    await gpus.recheck()

    assert len(reasons) == 1
    gpus.give_up("exp", "two")
    await waiting


async def test_rules_of_the_machine_are_applied() -> None:
    source = InMemoryGpuDevices([GpuDevice(0, "a", 1), GpuDevice(1, "b", 1)])
    gpus = GpuAllocator(source, ProcProcessTable(), MachineGpuRules(allowed_indices=(1,)))

    assert await gpus.acquire(request("one"), print) == GpuAllocation((1,))


async def test_request_of_another_experiment_is_not_given_up_with_a_trial_of_its_name() -> None:
    gpus, _ = desk(GpuDevice(0, "a", 1))
    await gpus.acquire(request("first"), print)
    other = asyncio.create_task(gpus.acquire(GpuRequest("other", "one", 1), print))
    mine = asyncio.create_task(gpus.acquire(request("one"), print))
    await settle()

    gpus.give_up("exp", "one")
    gpus.give_up("exp", "unknown")
    await gpus.release("exp", "unknown")
    assert await mine is None
    await gpus.release("exp", "first")

    assert await other == GpuAllocation((0,))
    assert not gpus.waiting


async def test_trial_of_several_gpus_holds_each_of_them() -> None:
    gpus, _ = desk(*(GpuDevice(index, "a", 1) for index in range(3)))

    assert await gpus.acquire(request("one", 2), print) == GpuAllocation((0, 1))

    assert [gpus.holders_of(index) for index in range(3)] == [["one"], ["one"], []]
    await gpus.release("exp", "one")
    assert [gpus.holders_of(index) for index in range(3)] == [[], [], []]
