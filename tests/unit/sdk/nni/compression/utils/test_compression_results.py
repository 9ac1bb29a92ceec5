from pathlib import Path

import pytest
import torch
from torch import nn

from nni.compression.pruning import L1NormPruner
from nni.compression.utils import apply_compression_results
from tests.unit.sdk.nni.compression.models import build

HALF = [{"op_types": ["Conv2d", "Linear"], "sparse_ratio": 0.5}]


@pytest.mark.claim("compression", 15)
def test_a_fresh_model_with_exported_files_computes_the_masked_model(tmp_path: Path) -> None:
    model, image = build("residual")
    pruner = L1NormPruner(model, HALF)
    pruner.compress()
    expected = model(image)
    pruner.export_model(tmp_path / "model.pth", tmp_path / "masks.pth")

    for state in (
        torch.load(tmp_path / "model.pth", weights_only=True),
        build("residual")[0].state_dict(),
    ):
        fresh = build("residual")[0]
        fresh.load_state_dict(state)
        apply_compression_results(fresh, tmp_path / "masks.pth", "cpu")

        assert torch.equal(fresh(image), expected)


def test_masks_may_be_given_as_a_dict() -> None:
    model = nn.Sequential(nn.Linear(2, 1, bias=False))

    apply_compression_results(model, {"0": {"weight": torch.tensor([[1.0, 0.0]]), "bias": None}})

    assert model[0].weight[0, 1] == 0
    assert model[0].weight[0, 0] != 0


def test_wrong_masks_are_refused(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 1))

    with pytest.raises(FileNotFoundError, match=r"none\.pth does not exist"):
        apply_compression_results(model, tmp_path / "none.pth")
    with pytest.raises(ValueError, match="module '1', which the model does not have"):
        apply_compression_results(model, {"1": {"weight": torch.ones(1)}})
    L1NormPruner(model, HALF)
    with pytest.raises(ValueError, match="is wrapped by a pruner"):
        apply_compression_results(model, {"0": {"weight": torch.ones(1, 2)}})
