import pytest
import torch
from torch import nn

from nni.compression.base.folding import fold_batch_norm, folding_problem, is_batch_norm
from tests.unit.sdk.nni.compression.models import randomised


@pytest.mark.claim("compression", 66)
def test_the_scalar_case() -> None:
    norm = nn.BatchNorm1d(1, eps=0)
    norm.load_state_dict(
        {
            "weight": torch.tensor([3.0]),
            "bias": torch.tensor([0.25]),
            "running_mean": torch.tensor([1.0]),
            "running_var": torch.tensor([4.0]),
            "num_batches_tracked": torch.tensor(1),
        }
    )

    weight, bias = fold_batch_norm(torch.tensor([[2.0]]), torch.tensor([0.5]), norm)

    assert (weight.tolist(), bias.tolist()) == ([[3.0]], [-0.5])


@pytest.mark.parametrize("affine", [True, False])
def test_the_folded_layer_computes_layer_and_norm(affine: bool) -> None:
    layer = nn.Conv2d(2, 6, 3, groups=2, bias=False)
    model = randomised(nn.Sequential(layer, nn.BatchNorm2d(6, affine=affine)))
    value = torch.randn(2, 2, 5, 5, generator=torch.Generator().manual_seed(1))

    weight, bias = fold_batch_norm(layer.weight, None, model[1])
    folded = nn.functional.conv2d(value, weight, bias, groups=2)

    assert torch.allclose(folded, model(value), atol=1e-6)


def test_what_cannot_be_folded_is_named() -> None:
    norm = nn.BatchNorm2d(4)

    assert folding_problem(nn.Conv2d(1, 4, 3), (norm, nn.ReLU())) is None
    assert folding_problem(nn.Linear(1, 4), (nn.ReLU(),)) is None
    assert "has 3 output channels, but the batch norm 4" in str(
        folding_problem(nn.Conv2d(1, 3, 3), (norm,))
    )
    assert "ConvTranspose2d has no weight" in str(
        folding_problem(nn.ConvTranspose2d(1, 4, 3), (norm,))
    )
    plain = nn.BatchNorm2d(4, track_running_stats=False)
    assert "no running statistics" in str(folding_problem(nn.Conv2d(1, 4, 3), (plain,)))
    assert "only be the second" in str(folding_problem(nn.Conv2d(1, 4, 3), (nn.ReLU(), norm)))


def test_kinds_of_batch_norms() -> None:
    assert is_batch_norm(nn.SyncBatchNorm(1))
    assert not is_batch_norm(nn.GroupNorm(1, 1))
