import pytest
import torch
from torch import nn

from nni.compression.base.masked_state import masked_state


def test_masked_values_are_zero_and_the_model_is_not_changed() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    weight: torch.Tensor = model[0].weight.detach().clone()
    mask = torch.tensor([[0.0, 1.0], [1.0, 1.0]])

    state = masked_state(model, {"0": {"weight": mask, "bias": None, "_output_": torch.zeros(1)}})

    assert list(state) == ["0.weight", "0.bias"]
    assert torch.equal(state["0.weight"], weight * mask)
    assert torch.equal(state["0.bias"], model.get_parameter("0.bias"))
    assert torch.equal(model.get_parameter("0.weight"), weight)


def test_a_mask_of_an_unknown_parameter_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"1\.weight"):
        masked_state(nn.Sequential(nn.Linear(1, 1)), {"1": {"weight": torch.ones(1)}})
