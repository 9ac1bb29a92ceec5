import logging
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.pruning.search_pruner import SearchPruner, check_mode


class Fixed(SearchPruner):
    """Prunes each layer to a sparsity of its own."""

    sparsities: dict[str, float]

    def search(self) -> None:
        self.update_masks(self.masks_at(self.sparsities))


def pruner(*ratios: float, **options: Any) -> Fixed:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 10), nn.Linear(10, 20))
    config_list = [{"op_names": [str(i)], "sparse_ratio": one} for i, one in enumerate(ratios)]
    found = Fixed(model, config_list, **options)
    found.sparsities = {"0": 0.2, "1": 0.5}
    return found


@pytest.mark.parametrize(("base_algo", "lost"), [("l1", [8, 100]), ("level", [8, 100])])
def test_each_layer_gets_its_sparsity(base_algo: str, lost: list[int]) -> None:
    one = pruner(0.3, 0.3, base_algo=base_algo)

    _, masks = one.compress()

    assert [int((masks[name]["weight"] == 0).sum()) for name in ("0", "1")] == lost
    assert one.layer_sparsities() == pytest.approx({"0": 0.2, "1": 0.5})
    assert one.weight_sizes() == {"0": 40, "1": 200}


def test_a_snapshot_restores_weights_and_masks() -> None:
    one = pruner(0.3, 0.3)
    weight = one.get_modules_wrapper()["0"].parameter("weight")
    before = one.snapshot()
    values = weight.detach().clone()

    one.compress()
    with torch.no_grad():
        weight.add_(1)
    one.restore(before)

    assert torch.equal(weight, values)
    assert one.layer_sparsities() == {"0": 0.0, "1": 0.0}


def test_the_first_ratio_counts(caplog: pytest.LogCaptureFixture) -> None:
    assert pruner(0.3).target_sparsity == 0.3
    with caplog.at_level(logging.WARNING):
        assert pruner(0.3, 0.4).target_sparsity == 0.3
    assert "the entries have several sparsities; 0.3 is used for all" in caplog.text
    with pytest.raises(ValueError, match="config_list must select a layer"):
        _ = pruner().target_sparsity


def test_the_mode_is_a_sign() -> None:
    assert (check_mode("maximize"), check_mode("minimize")) == (1, -1)
    with pytest.raises(ValueError, match="optimize_mode must be 'maximize' or 'minimize'"):
        check_mode("max")
