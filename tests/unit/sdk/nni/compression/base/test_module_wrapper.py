import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base.module_wrapper import FusedModule, ModuleWrapper, plain_parameters
from nni.compression.base.target_quantizer import TargetPlace, TargetQuantizer
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.config.settings import PruningSettings
from tests.unit.sdk.nni.compression.models import randomised

HALF = PruningSettings(sparse_ratio=0.5)


def wrapped(*targets: str, method: str = "mul") -> ModuleWrapper:
    settings = PruningSettings(sparse_ratio=0.5, apply_method=method)  # type: ignore[arg-type]
    torch.manual_seed(0)
    return ModuleWrapper(nn.Linear(3, 2), "fc", dict.fromkeys(targets, settings))


def row_mask() -> Tensor:
    return torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])


@pytest.mark.claim("compression", 11)
def test_masks_are_ones_of_the_shape_of_the_parameter() -> None:
    wrapper = ModuleWrapper(nn.Conv2d(1, 20, 5), "conv1", {"weight": HALF, "bias": HALF})

    assert torch.equal(wrapper.weight_mask, torch.ones(20, 1, 5, 5))
    assert torch.equal(wrapper.bias_mask, torch.ones(20))


def test_a_forward_pass_zeroes_masked_values_and_their_gradient() -> None:
    wrapper = wrapped("weight", "bias")
    wrapper.set_mask("weight", row_mask())
    wrapper.set_mask("bias", torch.tensor([0.0, 1.0]))
    inner = wrapper.module

    output = wrapper(torch.ones(4, 3))
    output.sum().backward()

    assert output[:, 0].tolist() == [0] * 4
    assert isinstance(inner, nn.Linear)
    assert inner.weight[0].tolist() == [0] * 3
    assert inner.weight.grad is not None
    assert inner.weight.grad[0].tolist() == [0] * 3
    assert inner.weight.grad[1].tolist() == [4] * 3
    assert inner.bias.grad is not None
    assert inner.bias.grad.tolist() == [0, 4]


def test_a_module_that_is_used_twice_in_a_pass_has_gradients() -> None:
    wrapper = ModuleWrapper(nn.Linear(2, 2), "fc", {"weight": HALF})
    wrapper.set_mask("weight", torch.tensor([[0.0, 1.0], [1.0, 0.0]]))

    wrapper(wrapper(torch.ones(1, 2))).sum().backward()

    assert wrapper.parameter("weight").grad is not None


def test_methods_add_and_bypass_keep_the_parameter() -> None:
    for method in ("add", "bypass"):
        wrapper = wrapped("weight", method=method)
        before = wrapper.parameter("weight").detach().clone()
        wrapper.set_mask("weight", row_mask())

        output = wrapper(torch.ones(1, 3))

        assert torch.equal(wrapper.parameter("weight"), before)
        assert (output[0, 0] < -2000) == (method == "add")


def test_inputs_and_outputs_are_masked_once_they_have_a_mask() -> None:
    wrapper = wrapped("_input_", "_output_0")
    plain = wrapper.module(torch.ones(1, 3))

    assert torch.equal(wrapper(torch.ones(1, 3)), plain)
    wrapper.set_mask("_output_0", torch.tensor([[1.0, 0.0]]))
    wrapper.set_mask("_input_", torch.zeros(1, 3))

    bias = wrapper.module.get_parameter("bias")
    assert wrapper(torch.ones(1, 3)).tolist() == [[bias[0].item(), 0.0]]


def test_attributes_are_those_of_the_module_with_masks() -> None:
    wrapper = wrapped("weight")
    wrapper.set_mask("weight", row_mask())

    assert wrapper.in_features == 3
    assert wrapper.weight[0].tolist() == [0] * 3
    assert not hasattr(wrapper, "missing")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_wrapper_copies_and_pickles_with_its_masks(copied: Callable[..., Any]) -> None:
    wrapper = wrapped("weight", "_output_")
    wrapper.set_mask("weight", row_mask())
    wrapper.set_mask("_output_", torch.tensor([1.0, 0.0]))

    other = copied(wrapper)

    assert torch.equal(other(torch.ones(1, 3)), wrapper(torch.ones(1, 3)))
    assert other.module is not wrapper.module


def test_masks_survive_the_state_dict() -> None:
    wrapper, other = wrapped("weight", "_output_"), wrapped("weight", "_output_")
    wrapper.set_mask("weight", row_mask())
    wrapper.set_mask("_output_", torch.tensor([1.0, 0.0]))

    other.load_state_dict(wrapper.state_dict())

    assert torch.equal(other.weight_mask, row_mask())
    assert other.mask("_output_") is not None


def test_a_replica_of_data_parallel_uses_the_masks() -> None:
    wrapper = wrapped("weight")
    wrapper.set_mask("weight", row_mask())
    bias = wrapper.module.get_parameter("bias")
    replica, inner = (
        module._replicate_for_data_parallel()  # type: ignore[no-untyped-call]
        for module in (wrapper, wrapper.module)
    )
    inner.weight, inner.bias = (one.detach().clone() for one in wrapper.module.parameters())
    replica._modules = {"module": inner}

    output = replica(torch.ones(1, 3))

    assert torch.equal(output, wrapper(torch.ones(1, 3)))
    assert output[0, 0] == bias[0]


def test_wrong_masks_and_targets_are_refused() -> None:
    wrapper = wrapped("weight")

    with pytest.raises(ValueError, match=r"fc\.weight must have shape \(2, 3\), got \(2,\)"):
        wrapper.set_mask("weight", torch.ones(2))
    with pytest.raises(ValueError, match=r"fc\.weight must hold only 0 and 1"):
        wrapper.set_mask("weight", torch.full((2, 3), 0.5))
    with pytest.raises(KeyError, match="fc has no target 'bias'; it has weight"):
        wrapper.mask("bias")
    with pytest.raises(AttributeError, match="fc has no parameter 'kernel'"):
        wrapped("kernel")


def test_parameters_have_their_plain_names() -> None:
    inner = nn.Sequential(ModuleWrapper(nn.Linear(1, 1), "0.0", {}))
    model = nn.Sequential(inner, nn.Linear(1, 1))

    assert list(plain_parameters(model)) == ["0.0.weight", "0.0.bias", "1.weight", "1.bias"]


class Rounded(TargetQuantizer):
    """Quantizer whose integers are the values themselves, without bits."""

    def forward(self, value: Tensor) -> Tensor:
        return value + (value.round() - value).detach()


def rounded(*targets: str) -> dict[str, TargetQuantizer]:
    return {one: Rounded(QuantizationSettings(), TargetPlace("fc", one)) for one in targets}


def test_input_parameters_and_output_are_quantized() -> None:
    wrapper = ModuleWrapper(nn.Linear(1, 1), "fc", {}, rounded("_input_0", "weight", "_output_0"))
    wrapper.module.weight.data.fill_(1.6)
    wrapper.module.bias.data.fill_(0.3)

    output = wrapper(torch.tensor([[0.7]]))
    output.backward()

    assert output.item() == 2  # round(2 * 1 + 0.3)
    assert wrapper.weight.item() == 2
    assert wrapper.parameter("weight").item() == pytest.approx(1.6)
    assert wrapper.parameter("weight").grad.item() == 1


def test_a_masked_target_is_masked_before_it_is_quantized() -> None:
    module = nn.Linear(2, 1, bias=False)
    module.weight.data = torch.tensor([[1.6, 1.6]])
    wrapper = ModuleWrapper(module, "fc", {"weight": HALF}, rounded("weight"))
    wrapper.set_mask("weight", torch.tensor([[0.0, 1.0]]))

    assert wrapper(torch.ones(1, 2)).item() == 2
    assert wrapper.weight.tolist() == [[0, 2]]


def fused_pair(quantized: bool) -> tuple[Any, ModuleWrapper]:
    """Return convolution, batch norm and activation, and a wrapper of all three."""
    model = randomised(nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU()))
    quantizers = rounded("weight") if quantized else {}
    return model, ModuleWrapper(model[0], "0", {}, quantizers, (model[1], model[2]))


@pytest.mark.claim("compression", 66)
def test_fused_modules_are_computed_by_the_wrapper() -> None:
    model, wrapper = fused_pair(quantized=False)
    value = torch.randn(2, 2, 5, 5, generator=torch.Generator().manual_seed(0))

    assert torch.allclose(wrapper(value), model(value), atol=1e-6)
    assert FusedModule(model[1], "1")(value) is value


def test_the_folded_weight_is_quantized() -> None:
    model, wrapper = fused_pair(quantized=True)
    value = torch.randn(2, 2, 5, 5, generator=torch.Generator().manual_seed(0))
    folded = wrapper.effective_parameters()

    output = wrapper(value)

    expected = nn.functional.conv2d(value, folded["weight"].round(), folded["bias"]).relu()
    assert torch.allclose(output, expected, atol=1e-6)
    assert torch.equal(wrapper.bias, folded["bias"])
    assert not torch.allclose(output, model(value), atol=1e-2)


def test_a_folded_batch_norm_learns_and_observes_in_training_only() -> None:
    model, wrapper = fused_pair(quantized=True)
    value = torch.randn(2, 2, 5, 5, generator=torch.Generator().manual_seed(0))
    twin = copy.deepcopy(model).train()
    wrapper(value)
    assert torch.equal(model[1].running_mean, twin[1].running_mean)

    wrapper.train()(value).sum().backward()
    twin(value)

    assert torch.allclose(model[1].running_mean, twin[1].running_mean)
    assert torch.allclose(model[1].running_var, twin[1].running_var)
    assert model[1].weight.grad.any()
    assert model[0].weight.grad.any()


def test_plain_names_of_fused_and_quantized_modules() -> None:
    model, wrapper = fused_pair(quantized=True)
    scale = nn.Parameter(torch.ones(()))
    wrapper.quantizers["weight"].learned = scale
    wrapped_model = nn.Sequential(wrapper, FusedModule(model[1], "1"), model[2])

    found = plain_parameters(wrapped_model)

    assert {name for name, one in found.items() if one is not scale} == {
        *("0.weight", "1.weight", "1.bias")
    }


def test_the_gradient_of_a_learned_mask_reaches_masked_weights_too() -> None:
    linear, scores = nn.Linear(1, 2, bias=False), torch.zeros(2, 1, requires_grad=True)
    wrapper = ModuleWrapper(linear, "fc", {"weight": PruningSettings(sparse_ratio=0.5)})
    weight = linear.weight.detach().clone()
    wrapper.set_mask("weight", torch.tensor([[0.0], [1.0]]))
    wrapper.learn_mask("weight", lambda mask: mask + scores - scores.detach())

    output = wrapper(torch.ones(1, 1))
    output.sum().backward()

    assert output[0, 0] == 0
    assert scores.grad is not None
    assert torch.equal(scores.grad, weight)
    assert torch.equal(linear.weight, weight)  # the masked weight keeps its value
    wrapper.learn_mask("weight", None)
    wrapper(torch.ones(1, 1))
    assert linear.weight[0, 0] == 0
