"""Which GPUs a trial gets, or why it has to wait."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """One GPU of this machine."""

    index: int
    name: str
    memory_bytes: int
    process_ids: frozenset[int] = frozenset()
    """Processes that use it, ours included."""


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """What a trial asks for."""

    experiment_id: str
    trial_id: str
    count: int | None
    """None: no assignment; 0: GPUs are hidden."""
    allowed_indices: tuple[int, ...] | None = None
    """None: all."""
    trials_per_gpu: int = 1
    use_active: bool = False
    """Whether GPUs that others use may be given, those of other experiments included."""


@dataclass(frozen=True, slots=True)
class GpuHolder:
    """A trial that holds GPUs."""

    experiment_id: str
    trial_id: str
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GpuAllocation:
    """The GPUs for a trial; None: `CUDA_VISIBLE_DEVICES` stays as it is."""

    indices: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class GpuWait:
    """The request cannot be met now."""

    reason: str
    hopeless: bool = False
    """No trial that ends can change it: the machine lacks the devices."""


def allocate(
    request: GpuRequest,
    devices: Sequence[GpuDevice],
    holders: Collection[GpuHolder],
    active: Mapping[int, str],
) -> GpuAllocation | GpuWait:
    """Choose the GPUs for a request.

    The least used ones are chosen, among equals those with the lowest index.

    Args:
        request: what is asked for.
        devices: all GPUs of the machine.
        holders: trials of this agent that hold GPUs now.
        active: by index, who outside of this agent uses a GPU; absent = nobody.
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
    wanted = f"waiting for {request.count} GPU{'s' if request.count > 1 else ''}"
    if len(allowed) < request.count:
        choice = "" if request.allowed_indices is None else " among those allowed by gpuIndices"
        return GpuWait(f"{wanted}: this machine has {len(allowed)}{choice}", hopeless=True)
    against = {index: _reason_against(index, request, holders, active) for index in allowed}
    free = [index for index, reason in against.items() if reason is None]
    if len(free) < request.count:
        busy = (f"{index} {reason}" for index, reason in against.items() if reason is not None)
        return GpuWait(f"{wanted}: {', '.join(busy)}")
    free.sort(key=lambda index: (sum(index in holder.indices for holder in holders), index))
    return GpuAllocation(tuple(sorted(free[: request.count])))


def _reason_against(
    index: int, request: GpuRequest, holders: Collection[GpuHolder], active: Mapping[int, str]
) -> str | None:
    """Say why a GPU cannot be given now; None if it can."""
    on_it = [holder for holder in holders if index in holder.indices]
    own = [holder for holder in on_it if holder.experiment_id == request.experiment_id]
    if len(own) >= request.trials_per_gpu:
        return "in use by trial " + " and ".join(holder.trial_id for holder in own)
    if request.use_active:
        return None
    others = [holder for holder in on_it if holder.experiment_id != request.experiment_id]
    if others:
        return f"in use by experiment {others[0].experiment_id}"
    return f"in use by {active[index]}" if index in active else None


def cuda_visible_devices(allocation: GpuAllocation) -> str | None:
    """Give the value of `CUDA_VISIBLE_DEVICES`; None: leave the variable alone."""
    if allocation.indices is None:
        return None
    return ",".join(map(str, allocation.indices))
