"""Batches and cache of a calibration."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from nni.compression.quantization_speedup import Calibrator
from nni.compression.quantization_speedup.calibrator import CalibrateType, algorithm_of


def test_an_incomplete_last_batch_is_left_out(tmp_path: Path) -> None:
    calibrator = Calibrator(torch.arange(5.0), tmp_path / "cache", batch_size=2)

    batches = [calibrator.get_batch(["input"]) for _ in range(4)]

    assert [None if one is None else one.tolist() for one in batches] == [
        [0.0, 1.0],
        [2.0, 3.0],
        None,
        [0.0, 1.0],
    ]
    assert calibrator.get_batch_size() == 2


def test_the_cache_is_a_file(tmp_path: Path) -> None:
    calibrator = Calibrator(np.zeros(2, np.float32), tmp_path / "cache", batch_size=1)
    assert calibrator.read_calibration_cache() is None

    calibrator.write_calibration_cache(b"{}")

    assert calibrator.read_calibration_cache() == b"{}"


def test_labels_of_a_loader_are_left_out(tmp_path: Path) -> None:
    loader = DataLoader(TensorDataset(torch.arange(3.0), torch.ones(3)), batch_size=2)

    batch = Calibrator(loader, tmp_path / "cache", batch_size=3).get_batch()

    assert batch is not None
    assert batch.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("entropy2", CalibrateType.ENTROPY2),
        ("legacy", CalibrateType.LEGACY),
        (SimpleNamespace(name="MINMAX_CALIBRATION"), CalibrateType.MINMAX),
    ],
)
def test_members_of_tensorrt_and_short_names_are_known(
    value: object, expected: CalibrateType
) -> None:
    assert algorithm_of(value) is expected


@pytest.mark.parametrize("size", [0, 3])
def test_a_batch_that_the_samples_do_not_fill_is_refused(tmp_path: Path, size: int) -> None:
    with pytest.raises(ValueError, match="batch_size must be from 1 to the number of samples, 2"):
        Calibrator(torch.zeros(2), tmp_path / "cache", batch_size=size)
