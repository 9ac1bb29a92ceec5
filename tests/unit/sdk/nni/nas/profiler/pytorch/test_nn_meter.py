"""Predictions of nn-Meter, which is not installed here: by an object with its interface."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nni
from nni.nas.nn.pytorch import MutableLinear
from nni.nas.profiler.pytorch import NnMeterProfiler
from nni.nas.profiler.pytorch.nn_meter import load_predictor


class Predictor:
    """Predicts the number of output features, in milliseconds."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, tuple[int, ...]]] = []

    def predict(self, model: nn.Module, *, model_type: str, input_shape: tuple[int, ...]) -> float:
        self.asked.append((type(model).__name__, model_type, input_shape))
        return float(getattr(model, "out_features", 1))


def test_missing_package_is_named_with_a_remedy() -> None:
    with pytest.raises(ImportError, match=r"pip install nn-meter.*LatencyProfiler"):
        load_predictor("cortexA76cpu_tflite21")


def test_predictions_of_layers_are_added() -> None:
    predictor = Predictor()
    space = nn.Sequential(MutableLinear(3, nni.choice("width", [4, 8])), nn.ReLU())

    profiler = NnMeterProfiler(space, torch.zeros(1, 3), predictor)

    assert profiler.profile({"width": 8}) == 9
    assert predictor.asked[0] == ("Linear", "torch", (1, 3))


def test_custom_types_are_predicted_as_a_whole() -> None:
    class Block(nn.Sequential):
        pass

    predictor = Predictor()
    NnMeterProfiler(Block(nn.ReLU(), nn.ReLU()), torch.zeros(1, 3), predictor, [Block])

    assert [name for name, _, _ in predictor.asked] == ["Block"]
