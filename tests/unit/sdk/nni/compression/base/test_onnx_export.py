import importlib.util
from pathlib import Path

import onnxruntime
import pytest
import torch
from torch import nn

from nni.compression.base.onnx_export import (
    check_onnx_arguments,
    check_onnx_packages,
    export_onnx,
)
from nni.compression.pruning import L1NormPruner


def test_the_file_computes_the_model_in_eval_mode(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout())
    value = torch.ones(2, 3)

    export_onnx(model, (value,), tmp_path / "model.onnx")

    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: value.numpy()})
    assert torch.allclose(torch.from_numpy(found), model[0](value), atol=1e-6)
    assert model.training
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.claim("compression", 14)
def test_a_pruned_model_is_exported_with_zeros_where_the_masks_are(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 24 * 24, 3))
    pruner = L1NormPruner(model, [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}])
    pruner.compress()
    path = tmp_path / "model.onnx"

    with pytest.raises(ValueError, match="onnx_path needs input_shape"):
        pruner.export_model(tmp_path / "model.pth", onnx_path=path)
    assert list(tmp_path.iterdir()) == []
    pruner.export_model(tmp_path / "model.pth", onnx_path=path, input_shape=[1, 1, 28, 28])

    image = torch.randn(1, 1, 28, 28)
    session = onnxruntime.InferenceSession(path)
    (found,) = session.run(None, {session.get_inputs()[0].name: image.numpy()})
    assert torch.allclose(torch.from_numpy(found), model(image), atol=1e-5)
    assert pruner.is_wrapped


def test_a_shape_is_needed_if_a_file_is_wanted() -> None:
    check_onnx_arguments(None, None)
    check_onnx_arguments("model.onnx", (1, 3))
    with pytest.raises(ValueError, match="onnx_path needs input_shape"):
        check_onnx_arguments("model.onnx", None)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "onnxscript" else real(name)
    )

    with pytest.raises(ImportError, match=r"needs onnxscript; run: pip install 'nni\[onnx\]'"):
        check_onnx_packages()
