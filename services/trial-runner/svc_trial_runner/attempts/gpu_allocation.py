"""Allocation of GPUs to trials: retried ones first, then first come, first served."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from svc_common.experiment_events.causes import WaitCause, WaitReason
from svc_trial_runner.domain.gpus import (
    NO_MACHINE_RULES,
    GpuAllocation,
    GpuDevice,
    GpuHolder,
    GpuRequest,
    MachineGpuRules,
    allocate,
)
from svc_trial_runner.ports import GpuDevices, ProcessTable


@dataclass(slots=True)
class _Waiter:
    """Trial that waits for GPUs: its request, callback, reason and future."""

    request: GpuRequest
    on_wait: Callable[[WaitReason], None]
    result: asyncio.Future[GpuAllocation | None]
    reason: WaitReason | None = None


class GpuAllocator:
    """Allocator of the machine's GPUs to trials: retried ones first, then first come first served.

    A request that this machine can never meet waits with its reason but does not block others.

    Args:
        source: the GPUs.
        processes: identifies GPU users that are trials of this agent.
        machine: rules of this machine.
    """

    def __init__(
        self,
        source: GpuDevices,
        processes: ProcessTable,
        machine: MachineGpuRules = NO_MACHINE_RULES,
    ) -> None:
        self._source = source
        self._processes = processes
        self._machine = machine
        self._holders: dict[tuple[str, str], GpuHolder] = {}
        self._waiters: list[_Waiter] = []
        self._lock = asyncio.Lock()

    async def acquire(
        self, request: GpuRequest, on_wait: Callable[[WaitReason], None]
    ) -> GpuAllocation | None:
        """Wait until the requested GPUs can be allocated; return them; None: cancelled.

        Args:
            request: what is needed.
            on_wait: called with the reason for waiting, whenever it changes.

        Returns:
            None: the request was cancelled by `give_up`.
        """
        if not request.count:
            return GpuAllocation(None if request.count is None else ())
        applied = self._machine.applied_to(request)
        waiter = _Waiter(applied, on_wait, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        self._waiters.sort(key=lambda one: not one.request.retried)
        await self.recheck()
        return await waiter.result

    def give_up(self, experiment_id: str, trial_id: str) -> None:
        """Cancel a waiting trial's GPU request; do nothing if it does not wait."""
        for waiter in self._waiters:
            if _name(waiter.request) == (experiment_id, trial_id):
                self._waiters.remove(waiter)
                if not waiter.result.done():
                    waiter.result.set_result(None)
                return

    async def release(self, experiment_id: str, trial_id: str) -> None:
        """Release the GPUs of a trial; do nothing if it holds none."""
        if self._holders.pop((experiment_id, trial_id), None) is not None:
            await self.recheck()

    @property
    def waiting(self) -> bool:
        """True if a trial waits for GPUs, which other programs may free unannounced."""
        return bool(self._waiters)

    async def devices(self) -> tuple[Sequence[GpuDevice], Mapping[int, str]]:
        """Return the GPUs, and by index their users outside of this agent."""
        devices = await self._source.devices()
        return devices, self._active(devices)

    def holders_of(self, index: int) -> list[str]:
        """Return the trials that hold a GPU."""
        return [h.trial_id for h in self._holders.values() if index in h.indices]

    async def recheck(self) -> None:
        """Allocate GPUs to waiting trials in order until one must wait; update their reasons."""
        async with self._lock:
            if not self._waiters:
                return
            devices, active = await self.devices()
            blocked = False
            for waiter in list(self._waiters):
                if waiter.result.done() or blocked:
                    continue
                answer = allocate(waiter.request, devices, self._holders.values(), active)
                if isinstance(answer, GpuAllocation):
                    self._give(waiter, answer)
                else:
                    blocked = answer.cause is not WaitCause.GPU_MISSING
                    _notify(waiter, answer)

    def _give(self, waiter: _Waiter, allocation: GpuAllocation) -> None:
        self._waiters.remove(waiter)
        name = _name(waiter.request)
        self._holders[name] = GpuHolder(*name, allocation.indices or ())
        waiter.result.set_result(allocation)

    def _active(self, devices: Sequence[GpuDevice]) -> Mapping[int, str]:
        users = frozenset(pid for device in devices for pid in device.process_ids)
        own = self._processes.own(users) if users else frozenset()
        active = {}
        for device in devices:
            foreign = sorted(device.process_ids - own)
            if foreign:
                active[device.index] = f"process {foreign[0]}"
        return active


def _name(request: GpuRequest) -> tuple[str, str]:
    return request.experiment_id, request.trial_id


def _notify(waiter: _Waiter, reason: WaitReason) -> None:
    if reason != waiter.reason:
        waiter.reason = reason
        waiter.on_wait(reason)
