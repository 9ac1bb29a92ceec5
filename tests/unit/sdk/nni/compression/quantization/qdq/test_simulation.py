from typing import Any

import onnx
import pytest
import torch
from torch import nn

from nni.compression.quantization import NaiveQuantizer
from nni.compression.quantization.qdq.simulation import (
    export_wrapped,
    exported_quantizers,
    exported_targets,
)
from nni.compression.quantization.qdq.targets import StoredIntegers


def test_the_quantizers_come_back_after_an_export() -> None:
    model = nn.Sequential(nn.Linear(2, 2)).train()
    NaiveQuantizer(model)
    quantizers = model[0].quantizers

    with exported_quantizers(model):
        replaced = model[0].quantizers["weight"]

    assert isinstance(replaced, StoredIntegers)
    assert model[0].quantizers is quantizers
    assert model.training


def test_targets_that_are_observed_only_do_not_occur() -> None:
    model: Any = nn.Sequential(nn.Linear(2, 2))
    NaiveQuantizer(model)

    assert list(model[0].quantizers) == ["_input_0", "weight"]
    assert list(exported_targets(model[0])) == ["weight"]


@pytest.mark.parametrize("value", [torch.zeros(1, 2), {"input": torch.zeros(1, 2)}])
def test_the_batch_has_a_name_if_it_may_have_any_size(value: Any, tmp_path: Any) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    NaiveQuantizer(model)

    export_wrapped(model, value, tmp_path / "model.onnx", dynamic_batch=True)

    shape = onnx.load(tmp_path / "model.onnx").graph.input[0].type.tensor_type.shape
    assert [one.dim_param or one.dim_value for one in shape.dim] == ["batch", 2]
