"""Conformance of `ports.GpuDevices`, for the driver and the fake."""

import pytest

from svc_trial_runner.adapters.gpu_devices import InMemoryGpuDevices, NvmlGpuDevices
from svc_trial_runner.domain.gpus import GpuDevice
from svc_trial_runner.ports import GpuDevices


@pytest.fixture(params=["memory", "nvml"])
def source(request: pytest.FixtureRequest) -> GpuDevices:
    if request.param == "nvml":
        return NvmlGpuDevices()
    return InMemoryGpuDevices([GpuDevice(0, "pretended", 1024, frozenset({1}))])


async def test_devices_are_numbered_from_zero(source: GpuDevices) -> None:
    devices = await source.devices()

    assert [device.index for device in devices] == list(range(len(devices)))
    for device in devices:
        assert device.name
        assert device.memory_bytes > 0


async def test_second_call_returns_the_same_devices(source: GpuDevices) -> None:
    first, second = await source.devices(), await source.devices()

    assert [device.name for device in first] == [device.name for device in second]
