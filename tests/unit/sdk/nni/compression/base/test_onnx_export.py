import importlib.util
from pathlib import Path

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from nni.algorithms.compression.pytorch.pruning import L1FilterPruner
from nni.algorithms.compression.pytorch.quantization import QAT_Quantizer
from nni.compression.base.onnx_export import (
    check_onnx_arguments,
    check_onnx_packages,
    export_onnx,
)
from nni.compression.pruning import FPGMPruner, L1NormPruner, LevelPruner


def convolutions() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten()),
        nn.Linear(16, 3),
    )


def computed(path: Path, image: Tensor) -> Tensor:
    """Return what onnxruntime computes."""
    session = onnxruntime.InferenceSession(path)
    (found,) = session.run(None, {session.get_inputs()[0].name: image.numpy()})
    return torch.from_numpy(found)


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


@pytest.mark.filterwarnings("ignore:.*of an older NNI:DeprecationWarning")
def test_every_pruner_of_a_model_with_batch_norms_runs_as_an_onnx_file(tmp_path: Path) -> None:
    image = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    for kind in (LevelPruner, FPGMPruner, L1FilterPruner):
        model = convolutions()
        pruner = kind(model, [{"op_types": ["Conv2d"], "sparsity": 0.5}])
        pruner.compress()

        pruner.export_model(
            tmp_path / "model.pth", tmp_path / "masks.pth", tmp_path / "model.onnx", [2, 3, 6, 6]
        )

        fresh = convolutions()
        fresh.load_state_dict(torch.load(tmp_path / "model.pth", weights_only=True))
        expected = fresh.eval()(image)
        assert torch.allclose(computed(tmp_path / "model.onnx", image), expected, atol=1e-5)
        assert torch.allclose(model.eval()(image), expected, atol=1e-5)
        assert not torch.allclose(convolutions().eval()(image), expected, atol=1e-2)


@pytest.mark.filterwarnings("ignore:this is the QATQuantizer of NNI 2.x:DeprecationWarning")
def test_the_model_of_a_quantizer_runs_as_an_onnx_file(tmp_path: Path) -> None:
    model = convolutions()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    config = {"op_types": ["Conv2d"], "quant_types": ["weight", "output"], "quant_bits": 8}
    quantizer = QAT_Quantizer(model, [config], optimizer)
    quantizer.compress()
    image = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    model(image).square().sum().backward()
    optimizer.step()
    expected = model.eval()(image)

    quantizer.export_model(
        tmp_path / "model.pth", tmp_path / "scales.pth", tmp_path / "model.onnx", [2, 3, 6, 6]
    )

    # A value between two integers may become either.
    one_step = float(expected.detach().abs().max()) / 50
    assert torch.allclose(computed(tmp_path / "model.onnx", image), expected, atol=one_step)
    fresh = convolutions()
    fresh.load_state_dict(torch.load(tmp_path / "model.pth", weights_only=True))
    assert not torch.equal(fresh.eval()(image), expected)


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
