# ruff: noqa: N802 - the names are those of NVIDIA's library
"""Fake of NVIDIA's management library."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class NvmlError(Exception):
    """Counterpart of the library's `NVMLError`."""


class NvmlLibrary:
    """Fake of the used part of `pynvml`.

    Args:
        gpus: number of GPUs.
        works: whether the driver answers; may be changed.
        name: name of every GPU; newer releases of the library return a text.
    """

    NVMLError = NvmlError

    def __init__(self, gpus: int = 1, *, works: bool = True, name: str | bytes = b"A GPU") -> None:
        self.gpus = gpus
        self.works = works
        self.name = name
        self.loads = 0
        """Number of initialisations."""

    def nvmlInit(self) -> None:
        self.loads += 1
        if not self.works:
            raise NvmlError("Driver Not Loaded")

    def nvmlShutdown(self) -> None:
        """Do nothing: the fake holds no resource."""

    def nvmlDeviceGetCount(self) -> int:
        if not self.works:
            raise NvmlError("GPU is lost")
        return self.gpus

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        return index

    def nvmlDeviceGetName(self, _handle: Any) -> str | bytes:
        return self.name

    def nvmlDeviceGetMemoryInfo(self, _handle: Any) -> Any:
        return SimpleNamespace(total=2**30, used=2**28)

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Any:
        if handle >= self.gpus:
            raise NvmlError("Not Supported")
        return SimpleNamespace(gpu=75, memory=10)

    def nvmlDeviceGetComputeRunningProcesses(self, _handle: Any) -> list[Any]:
        return [SimpleNamespace(pid=7), SimpleNamespace(pid=8)]

    def nvmlDeviceGetGraphicsRunningProcesses(self, _handle: Any) -> list[Any]:
        raise NvmlError("not supported")
