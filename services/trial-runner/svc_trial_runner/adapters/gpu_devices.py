"""Sources of GPUs: the NVIDIA driver, and an in-memory source for tests."""

import asyncio
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from svc_common.logs import get_logger
from svc_trial_runner.domain.gpus import GpuDevice
from svc_trial_runner.domain.resource_use import GpuUse


class InMemoryGpuDevices:
    """`GpuDevices` with devices that a test sets."""

    def __init__(self, devices: Sequence[GpuDevice] = ()) -> None:
        self._devices = list(devices)

    async def devices(self) -> Sequence[GpuDevice]:
        """Return the devices and their users; empty without a driver."""
        return list(self._devices)

    async def use(self, indices: Sequence[int]) -> Sequence[GpuUse]:
        """Return the requested devices that exist, as idle ones."""
        return [GpuUse(one.index, 0.0, 0) for one in self._devices if one.index in indices]

    def replace(self, devices: Sequence[GpuDevice]) -> None:
        """Replace the devices and their users."""
        self._devices = list(devices)


class NvmlGpuDevices:
    """`GpuDevices` that reads NVIDIA GPUs and their processes through `pynvml`.

    Failures are logged and mean that there are no GPUs; without a driver there is only one try.

    Args:
        load: returns the library, the module `pynvml`.
    """

    def __init__(self, load: Callable[[], Any] = lambda: importlib.import_module("pynvml")) -> None:
        self._load = load
        self._library: Any = None
        self._failed = False

    async def devices(self) -> Sequence[GpuDevice]:
        """Read the GPUs, with the process ids on each, in a thread; empty if there is no driver."""
        if self._failed:
            return []
        return await asyncio.to_thread(self._read)

    async def use(self, indices: Sequence[int]) -> Sequence[GpuUse]:
        """Read utilization and used memory of devices in a thread; leave out those that fail."""
        if self._failed or self._library is None:  # opened by `devices`, before a trial has a GPU
            return []
        return await asyncio.to_thread(self._read_use, indices)

    def _read_use(self, indices: Sequence[int]) -> list[GpuUse]:
        library, found = self._library, []
        for index in indices:
            try:
                handle = library.nvmlDeviceGetHandleByIndex(index)
                memory_bytes = int(library.nvmlDeviceGetMemoryInfo(handle).used)
                percent = float(library.nvmlDeviceGetUtilizationRates(handle).gpu)
            except library.NVMLError:
                continue  # lost, or a kind of device that does not tell it
            found.append(GpuUse(index, percent / 100, memory_bytes))
        return found

    def _read(self) -> list[GpuDevice]:
        try:
            if self._library is None:
                library = self._load()
                library.nvmlInit()
                self._library = library
            return [self._device(i) for i in range(self._library.nvmlDeviceGetCount())]
        except Exception as error:  # noqa: BLE001 - trials run whatever the driver's error
            self._failed = self._library is None
            get_logger().info("no GPUs can be seen", reason=str(error))
            return []

    def _device(self, index: int) -> GpuDevice:
        library = self._library
        handle = library.nvmlDeviceGetHandleByIndex(index)
        name = library.nvmlDeviceGetName(handle)
        users: set[int] = set()
        for ask in (
            library.nvmlDeviceGetComputeRunningProcesses,
            library.nvmlDeviceGetGraphicsRunningProcesses,
        ):
            try:
                users.update(process.pid for process in ask(handle))
            except library.NVMLError:
                continue  # the device does not report this kind of process
        return GpuDevice(
            index,
            name.decode() if isinstance(name, bytes) else str(name),
            int(library.nvmlDeviceGetMemoryInfo(handle).total),
            frozenset(users),
        )
