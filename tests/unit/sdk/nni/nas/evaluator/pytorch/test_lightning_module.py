import pytest
from torch import nn

from nni.nas.evaluator.pytorch import LightningModule


def test_the_model_is_set_and_replaced() -> None:
    module = LightningModule()
    first, second = nn.Linear(1, 1), nn.Linear(1, 2)

    module.set_model(first)
    module.set_model(second)

    assert module.model is second
    assert [name for name, _ in module.named_parameters()] == ["model.weight", "model.bias"]


def test_no_model_is_an_error_that_says_when_it_comes() -> None:
    with pytest.raises(RuntimeError, match="LightningModule has no model yet"):
        _ = LightningModule().model


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module, got type"):
        LightningModule().set_model(nn.Linear)  # type: ignore[arg-type]
