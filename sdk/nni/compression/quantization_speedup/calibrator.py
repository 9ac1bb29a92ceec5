"""Batches for the calibration of an engine, and the cache of its result."""

from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader


class CalibrateType(StrEnum):
    """Algorithm that chooses the range of a layer's input; values are the names of TensorRT."""

    LEGACY = "LEGACY_CALIBRATION"
    """The smallest range with 99.99 % of all values."""
    ENTROPY = "ENTROPY_CALIBRATION"
    """The range that loses the least information."""
    ENTROPY2 = "ENTROPY_CALIBRATION_2"
    """As `ENTROPY`."""
    MINMAX = "MINMAX_CALIBRATION"
    """The range of all values."""


def algorithm_of(value: object) -> CalibrateType:
    """Return the algorithm of a name or of a member of TensorRT's enum; raise if unknown.

    Raises:
        ValueError: there is none.

    Examples:
        >>> algorithm_of("minmax")
        <CalibrateType.MINMAX: 'MINMAX_CALIBRATION'>
    """
    name = str(getattr(value, "name", value)).upper()
    for one in CalibrateType:
        if name in {one.name, one.value}:
            return one
    names = ", ".join(CalibrateType)
    raise ValueError(f"algorithm must be one of {names}, got {value!r}")


class Calibrator:
    """Batches for the calibration of an engine, and the file that keeps its result.

    Args:
        training_data: samples along the first dimension, or a `DataLoader` of pairs (samples,
            labels).
        cache_file: file with the result of an earlier calibration; read if it exists, else
            written.
        batch_size: samples of a batch; an incomplete last batch is left out.
        algorithm: a `CalibrateType`, its name, or that of `tensorrt.CalibrationAlgoType`.

    Raises:
        ValueError: the data are something else, or fewer than one batch.

    Examples:
        >>> calibrator = Calibrator(torch.zeros(5, 3), "calibration.cache", batch_size=2)
        >>> [tuple(calibrator.get_batch().shape) for _ in range(2)], calibrator.get_batch()
        ([(2, 3), (2, 3)], None)
    """

    def __init__(
        self,
        training_data: Any,  # noqa: ANN401 - arrays of any library
        cache_file: str | Path,
        batch_size: int = 64,
        algorithm: object = CalibrateType.ENTROPY2,
    ) -> None:
        self._samples = samples_of(training_data)
        if not 0 < batch_size <= len(self._samples):
            raise ValueError(
                f"batch_size must be from 1 to the number of samples, {len(self._samples)}, got "
                f"{batch_size}; give more samples or smaller batches"
            )
        self.cache_file = Path(cache_file)
        self._batch_size = batch_size
        self._algorithm = algorithm_of(algorithm)
        self._next = 0

    def get_batch(self, names: object = None) -> Tensor | None:
        """Return the next whole batch; None after the last one, which starts over.

        Args:
            names: not used; TensorRT gives the names of inputs.
        """
        del names
        end = self._next + self._batch_size
        if end > len(self._samples):
            self._next = 0
            return None
        batch = self._samples[self._next : end]
        self._next = end
        return batch

    def get_batch_size(self) -> int:
        """Return the number of samples of a batch."""
        return self._batch_size

    def get_algorithm(self) -> CalibrateType:
        """Return the algorithm that chooses ranges."""
        return self._algorithm

    def read_calibration_cache(self) -> bytes | None:
        """Return the content of the cache; None: there is no file."""
        return self.cache_file.read_bytes() if self.cache_file.exists() else None

    def write_calibration_cache(self, cache: bytes) -> None:
        """Replace the cache file by the given bytes."""
        self.cache_file.write_bytes(cache)


def samples_of(data: Any) -> Tensor:  # noqa: ANN401 - arrays of any library
    """Return all samples of a tensor, array or non-empty `DataLoader` as one tensor; else raise.

    Raises:
        ValueError: the data are something else.
    """
    if isinstance(data, DataLoader):
        batches = [one[0] if isinstance(one, (tuple, list)) else one for one in data]
        if batches:
            return torch.cat(batches)
    elif isinstance(data, Tensor):
        return data
    elif hasattr(data, "__array__"):
        return torch.as_tensor(data)
    raise ValueError(
        "calibration data must be a tensor, an array or a DataLoader of pairs (samples, labels) "
        f"that is not empty, got {type(data).__name__}"
    )
