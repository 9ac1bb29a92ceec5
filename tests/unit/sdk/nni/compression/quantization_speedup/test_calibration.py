"""Scales that are measured by running the model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from nni.compression.quantization_speedup import Calibrator
from nni.compression.quantization_speedup.calibration import calibrated


def test_scales_are_those_of_the_largest_magnitudes(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False)).eval()
    model[0].weight.data = torch.tensor([[1.0, -2.0], [0.5, 0.25]])
    data = torch.tensor([[1.0, -4.0], [3.0, 0.0]])

    found = calibrated(model, Calibrator(data, tmp_path / "cache", 1, "minmax"))

    assert found["0"]["_input_0"]["scale"] == pytest.approx(4 / 127)
    assert found["0"]["weight"]["scale"] == [
        [pytest.approx(2 / 127)],
        [pytest.approx(0.5 / 127)],
    ]
    assert json.loads((tmp_path / "cache").read_text()) == {"0": pytest.approx(4 / 127)}


def test_channels_of_a_transposed_convolution_are_in_its_second_dimension(tmp_path: Path) -> None:
    model = nn.Sequential(nn.ConvTranspose2d(2, 3, 1)).eval()

    found = calibrated(model, Calibrator(torch.ones(1, 2, 2, 2), tmp_path / "cache", 1))

    assert torch.tensor(found["0"]["weight"]["scale"]).shape == (1, 3, 1, 1)


def test_samples_of_64_bits_are_converted(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2))

    found = calibrated(model, Calibrator(np.ones((1, 2)), tmp_path / "cache", 1, "minmax"))

    assert found["0"]["_input_0"]["scale"] == pytest.approx(1 / 127)


def test_modes_of_the_model_stay(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())

    calibrated(model, Calibrator(torch.ones(1, 2), tmp_path / "cache", 1))

    assert model.training
