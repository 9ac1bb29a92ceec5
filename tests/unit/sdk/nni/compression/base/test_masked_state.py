from pathlib import Path

import onnxruntime
import pytest
import torch
from torch import nn

from nni.compression.base.masked_state import export_masked, masked_state


def test_masked_values_are_zero_and_the_model_is_not_changed() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    weight: torch.Tensor = model[0].weight.detach().clone()
    mask = torch.tensor([[0.0, 1.0], [1.0, 1.0]])

    state = masked_state(model, {"0": {"weight": mask, "bias": None, "_output_": torch.zeros(1)}})

    assert list(state) == ["0.weight", "0.bias"]
    assert torch.equal(state["0.weight"], weight * mask)
    assert torch.equal(state["0.bias"], model.get_parameter("0.bias"))
    assert torch.equal(model.get_parameter("0.weight"), weight)


def test_all_names_of_a_shared_parameter_hold_the_masked_values() -> None:
    model = nn.ModuleDict({"embedding": nn.Embedding(2, 3), "head": nn.Linear(3, 2, bias=False)})
    model["head"].weight = model["embedding"].weight
    mask = torch.tensor([[0.0], [1.0]]).expand(2, 3)

    state = masked_state(model, {"embedding": {"weight": mask}})
    model.load_state_dict(state)

    assert torch.equal(state["head.weight"], state["embedding.weight"])
    assert torch.equal(model.get_parameter("embedding.weight")[0], torch.zeros(3))


def test_a_mask_of_an_unknown_parameter_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"1\.weight"):
        masked_state(nn.Sequential(nn.Linear(1, 1)), {"1": {"weight": torch.ones(1)}})


def test_a_file_of_the_state_is_needed() -> None:
    with pytest.raises(TypeError, match="model_path must be the path of a file, got None"):
        export_masked(nn.Linear(1, 1), {}, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("inputs", [{"values": torch.ones(1, 2)}, (torch.ones(1, 2),)])
def test_a_model_in_onnx_takes_inputs_in_any_form(tmp_path: Path, inputs: object) -> None:
    class Sum(nn.Module):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return values.sum(1)

    path = tmp_path / "model.onnx"
    export_masked(
        Sum(), {}, tmp_path / "model.pth", onnx_path=path, dummy_input=inputs, opset_version=20
    )

    session = onnxruntime.InferenceSession(path)
    (found,) = session.run(None, {session.get_inputs()[0].name: torch.ones(1, 2).numpy()})
    assert found.tolist() == [2]
