from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.quantization import NaiveQuantizer
from nni.compression.quantization.qdq.exported_model import wrapped_model

VALUE = torch.zeros(1, 4)


def linear() -> Any:
    return nn.Sequential(nn.Linear(4, 3))


def test_a_configuration_wraps_the_model_for_the_block() -> None:
    model = linear()
    quantizer = NaiveQuantizer(model)
    calibration = quantizer.get_calibration_config()
    quantizer.unwrap_model()

    with wrapped_model(model, calibration, VALUE, fold_batch_norms=False):
        assert isinstance(model[0], ModuleWrapper)

    assert isinstance(model[0], nn.Linear)


def test_a_quantizer_leaves_its_wrappers() -> None:
    model = linear()
    quantizer = NaiveQuantizer(model)
    wrapper = model[0]

    with wrapped_model(model, quantizer, VALUE, fold_batch_norms=False):
        assert model[0] is wrapper

    assert model[0] is wrapper


def test_a_wrapped_model_needs_its_quantizer() -> None:
    model = linear()
    calibration = NaiveQuantizer(model).get_calibration_config()

    with (
        pytest.raises(ValueError, match="model must be unwrapped"),
        wrapped_model(model, calibration, VALUE, fold_batch_norms=False),
    ):
        pass


def test_an_unwrapped_model_needs_its_configuration() -> None:
    quantizer = NaiveQuantizer(linear())

    with (
        pytest.raises(ValueError, match="model must be the one that calibration quantizes"),
        wrapped_model(linear(), quantizer, VALUE, fold_batch_norms=False),
    ):
        pass
