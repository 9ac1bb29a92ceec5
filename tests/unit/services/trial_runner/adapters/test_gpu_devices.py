from typing import Any

import pytest

from svc_trial_runner.adapters.gpu_devices import InMemoryGpuDevices, NvmlGpuDevices
from svc_trial_runner.domain.gpus import GpuDevice
from svc_trial_runner.domain.resource_use import GpuUse
from tests.support.nvml import NvmlLibrary


async def test_device_has_its_users() -> None:
    source = NvmlGpuDevices(NvmlLibrary)

    assert await source.devices() == [GpuDevice(0, "A GPU", 2**30, frozenset({7, 8}))]


async def test_no_driver_means_no_gpus_and_is_not_tried_again() -> None:
    library = NvmlLibrary(works=False)
    source = NvmlGpuDevices(lambda: library)

    assert await source.devices() == []
    assert await source.devices() == []
    assert library.loads == 1


async def test_driver_that_fails_for_a_while_is_tried_again() -> None:
    library = NvmlLibrary()
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


async def test_use_is_a_share_and_a_gpu_that_tells_none_is_left_out() -> None:
    source = NvmlGpuDevices(NvmlLibrary)
    await source.devices()

    assert await source.use([0, 1]) == [GpuUse(0, 0.75, 2**28)]


async def test_without_a_driver_no_use_is_read() -> None:
    assert await NvmlGpuDevices(lambda: NvmlLibrary(works=False)).use([0]) == []


@pytest.mark.parametrize("name", ["A GPU", b"A GPU"])
async def test_gpus_have_their_numbers_and_names(name: str | bytes) -> None:
    source = NvmlGpuDevices(lambda: NvmlLibrary(2, name=name))

    devices = await source.devices()

    assert [(device.index, device.name) for device in devices] == [(0, "A GPU"), (1, "A GPU")]


async def test_driver_is_initialised_once() -> None:
    library = NvmlLibrary()
    source = NvmlGpuDevices(lambda: library)

    for _ in range(2):
        await source.devices()

    assert library.loads == 1


async def test_devices_that_a_test_sets_are_read_and_idle() -> None:
    first, second = GpuDevice(0, "a", 1), GpuDevice(1, "b", 1)
    source = InMemoryGpuDevices([first])

    before = await source.devices()
    source.replace([first, second])

    assert before == [first]
    assert await source.use([1, 2]) == [GpuUse(1, 0.0, 0)]
