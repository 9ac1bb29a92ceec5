# ruff: noqa: N802 - the names are those of NVIDIA's library
from types import SimpleNamespace
from typing import Any

from svc_trial_runner.adapters.gpus import NvmlGpuDevices
from svc_trial_runner.domain.gpus import GpuDevice


class NvmlError(Exception):
    """As the library's `NVMLError`."""


class Library:
    """The part of `pynvml` that is used, on a machine with one GPU."""

    NVMLError = NvmlError

    def __init__(self, *, works: bool = True) -> None:
        self.works = works
        self.loads = 0

    def nvmlInit(self) -> None:
        self.loads += 1
        if not self.works:
            raise NvmlError("driver not loaded")

    def nvmlDeviceGetCount(self) -> int:
        if not self.works:
            raise NvmlError("GPU is lost")
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        return index

    def nvmlDeviceGetName(self, _handle: Any) -> bytes:
        return b"A GPU"

    def nvmlDeviceGetMemoryInfo(self, _handle: Any) -> Any:
        return SimpleNamespace(total=2**30)

    def nvmlDeviceGetComputeRunningProcesses(self, _handle: Any) -> list[Any]:
        return [SimpleNamespace(pid=7), SimpleNamespace(pid=8)]

    def nvmlDeviceGetGraphicsRunningProcesses(self, _handle: Any) -> list[Any]:
        raise NvmlError("not supported")


async def test_device_is_told_with_its_users() -> None:
    source = NvmlGpuDevices(Library)

    assert await source.devices() == [GpuDevice(0, "A GPU", 2**30, frozenset({7, 8}))]


async def test_no_driver_means_no_gpus_and_is_not_tried_again() -> None:
    library = Library(works=False)
    source = NvmlGpuDevices(lambda: library)

    assert await source.devices() == []
    assert await source.devices() == []
    assert library.loads == 1


async def test_driver_that_fails_for_a_while_is_asked_again() -> None:
    library = Library()
    source = NvmlGpuDevices(lambda: library)
    await source.devices()
    library.works = False
    assert await source.devices() == []

    library.works = True

    assert len(await source.devices()) == 1


async def test_missing_library_means_no_gpus() -> None:
    def load() -> Any:
        raise ImportError("pynvml")

    assert await NvmlGpuDevices(load).devices() == []
