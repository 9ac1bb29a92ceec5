"""Rules of GPU allocation: which GPUs a trial gets, or why it waits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from svc_common.experiment_events.causes import GpuUser, WaitCause, WaitReason


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """GPU of this machine: index, name, memory and the processes that use it."""

    index: int
    name: str
    memory_bytes: int
    process_ids: frozenset[int] = frozenset()
    """Processes that use it, including trials."""


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """GPU request of a trial: number of GPUs, and which ones the trial may get."""

    experiment_id: str
    trial_id: str
    count: int | None
    """None: no assignment; 0: GPUs are hidden."""
    allowed_indices: tuple[int, ...] | None = None
    """None: all devices."""
    trials_per_gpu: int = 1
    use_active: bool = False
    """True if GPUs in use by others, including other experiments, may be allocated."""
    retried: bool = False
    """True if it comes before all trials in their first attempt."""


@dataclass(frozen=True, slots=True)
class MachineGpuRules:
    """Rules of one machine for its GPUs, which override those of experiments."""

    allowed_indices: tuple[int, ...] | None = None
    """None: the experiment's rule holds, as for the others."""
    use_active: bool | None = None
    trials_per_gpu: int | None = None

    def applied_to(self, request: GpuRequest) -> GpuRequest:
        """Return the request with the rules of this machine in place of the experiment's."""
        return replace(
            request,
            allowed_indices=(
                request.allowed_indices if self.allowed_indices is None else self.allowed_indices
            ),
            use_active=request.use_active if self.use_active is None else self.use_active,
            trials_per_gpu=(
                request.trials_per_gpu if self.trials_per_gpu is None else self.trials_per_gpu
            ),
        )


NO_MACHINE_RULES: Final = MachineGpuRules()


def parse_visible_devices(text: str) -> tuple[int, ...] | None:
    """Return the indices in a value of `CUDA_VISIBLE_DEVICES`; None: it names devices otherwise.

    A batch system gives the GPUs of a job by this variable.
    """
    parts = [part.strip() for part in text.split(",")]
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None


@dataclass(frozen=True, slots=True)
class GpuHolder:
    """Trial of this agent, and the GPUs allocated to it."""

    experiment_id: str
    trial_id: str
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GpuAllocation:
    """GPUs allocated to a trial; None: `CUDA_VISIBLE_DEVICES` is not set."""

    indices: tuple[int, ...] | None


def allocate(
    request: GpuRequest,
    devices: Sequence[GpuDevice],
    holders: Collection[GpuHolder],
    active: Mapping[int, str],
) -> GpuAllocation | WaitReason:
    """Choose the least used permitted GPUs for a request; else return why it must wait.

    The least used ones are chosen, among equals those with the lowest index. A wait of GPU_MISSING
    is hopeless: the machine lacks the devices, so no end of a trial can change it.

    Args:
        request: of the trial.
        devices: all GPUs of the machine.
        holders: trials of this agent that hold GPUs now.
        active: by index, the user of a GPU outside of this agent; absent = none.
    """
    if request.count is None:
        return GpuAllocation(None)
    if request.count == 0:
        return GpuAllocation(())
    allowed = [
        device.index
        for device in devices
        if request.allowed_indices is None or device.index in request.allowed_indices
    ]
    if len(allowed) < request.count:
        return WaitReason(
            WaitCause.GPU_MISSING,
            gpu_count=request.count,
            gpu_available=len(allowed),
            gpu_restricted=request.allowed_indices is not None,
        )
    users = {index: _user_of(index, request, holders, active) for index in allowed}
    free = [index for index, user in users.items() if user is None]
    if len(free) < request.count:
        busy = tuple(user for user in users.values() if user is not None)
        return WaitReason(WaitCause.GPU_IN_USE, gpu_count=request.count, users=busy)
    free.sort(key=lambda index: (sum(index in holder.indices for holder in holders), index))
    return GpuAllocation(tuple(sorted(free[: request.count])))


def _user_of(
    index: int, request: GpuRequest, holders: Collection[GpuHolder], active: Mapping[int, str]
) -> GpuUser | None:
    """Return what occupies a GPU, so that a request cannot have it; None: it is free."""
    on_it = [holder for holder in holders if index in holder.indices]
    own = [holder for holder in on_it if holder.experiment_id == request.experiment_id]
    if len(own) >= request.trials_per_gpu:
        return GpuUser(index, trial_ids=tuple(holder.trial_id for holder in own))
    if request.use_active:
        return None
    others = [holder for holder in on_it if holder.experiment_id != request.experiment_id]
    if others:
        return GpuUser(index, experiment_id=others[0].experiment_id)
    return GpuUser(index, process=active[index]) if index in active else None


def cuda_visible_devices(allocation: GpuAllocation) -> str | None:
    """Return the allocated indices joined by commas; None: leave the variable unset."""
    if allocation.indices is None:
        return None
    return ",".join(map(str, allocation.indices))
