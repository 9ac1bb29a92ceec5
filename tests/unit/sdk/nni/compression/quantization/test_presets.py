from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.compression.quantization.presets import PRESETS, RUNTIMES, config_list_for
from tests.unit.sdk.nni.compression.models import Plain, Residual


def targets(model: nn.Module) -> dict[str, list[str]]:
    """Return the names of modules by target."""
    found: dict[str, list[str]] = {}
    for entry in config_list_for("onnxruntime", model, (torch.zeros(2, 3, 8, 8),)):
        one: Any = entry
        for target in one["target_names"]:
            found.setdefault(target, []).extend(one["op_names"])
    return found


def test_inputs_and_weights_of_layers_are_integers() -> None:
    found = targets(Plain().train())

    assert found == {
        "_input_": ["conv1.0", "conv2.0", "fc"],
        "weight": ["conv1.0", "conv2.0", "fc"],
    }


def test_outputs_that_are_added_are_integers() -> None:
    assert targets(Residual())["_output_"] == ["first.1", "second.1"]


def test_an_activation_that_no_layer_reads_is_rounded_itself() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.ModuleList(nn.Conv2d(3, 3, 1) for _ in range(4))
            self.once, self.twice = nn.ReLU(), nn.ReLU()

        def forward(self, image: Tensor) -> Tensor:
            one = self.once(self.conv[0](image))
            other = self.twice(self.conv[1](image)) + self.twice(self.conv[2](image))
            return one * other * functional.relu(self.conv[3](image))

    assert targets(Net())["_output_"] == ["once", "conv.1", "conv.2", "conv.3"]


def test_the_input_of_a_mean_over_pixels_is_an_integer() -> None:
    model = nn.Sequential(nn.Conv2d(3, 2, 1), nn.AdaptiveAvgPool2d(1))

    assert targets(model) == {"_input_": ["0", "1"], "weight": ["0"]}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_weights_have_a_scale_by_channel_and_activations_a_zero_point(runtime: Any) -> None:
    (entry,) = config_list_for(runtime, nn.Sequential(nn.Linear(2, 2)), (torch.zeros(1, 2),))

    assert entry["target_settings"] == {
        "weight": PRESETS[runtime].weight,
        "_input_": PRESETS[runtime].activation,
    }
    assert PRESETS[runtime].weight["granularity"] == "out_channel"


def test_wrong_arguments_are_named() -> None:
    runtime: Any = "tflite"
    inputs: Any = torch.zeros(1, 2)
    with pytest.raises(ValueError, match="runtime must be one of onnxruntime, openvino, got"):
        config_list_for(runtime, nn.ReLU(), (inputs,))
    with pytest.raises(TypeError, match=r"example_inputs must be a tuple .* write \(tensor,\)"):
        config_list_for("openvino", nn.ReLU(), inputs)
