import pytest
import torch
from torch import nn

from nni.compression.config.settings import ConfigListError
from nni.compression.pruning import LevelPruner


def test_the_smallest_elements_are_masked_and_no_bias() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].weight.data = torch.tensor([[0.1, -4.0], [3.0, -0.2]])
    pruner = LevelPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])

    _, masks = pruner.compress()

    assert masks["0"]["weight"].tolist() == [[0, 1], [1, 0]]
    assert masks["0"]["bias"].tolist() == [1, 1]


def seeded(model: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data.normal_(generator=generator)
    return model


def test_two_of_four_neighbouring_inputs_stay_in_balance_mode() -> None:
    model = seeded(nn.Sequential(nn.Linear(8, 3), nn.Conv2d(8, 2, 3)))
    weights = [model[0].weight.detach().clone(), model[1].weight.detach().movedim(1, -1).clone()]
    config_list = [{"op_types": ["Linear", "Conv2d"], "sparse_ratio": 0.5}]

    _, masks = LevelPruner(model, config_list, mode="balance").compress()

    kept = [masks["0"]["weight"], masks["1"]["weight"].movedim(1, -1)]
    for mask, weight in zip(kept, weights, strict=True):
        tiles, values = mask.reshape(-1, 4), weight.reshape(-1, 4).abs()
        assert tiles.sum(-1).tolist() == [2] * len(tiles)
        largest = values.topk(2).indices
        assert bool(tiles.gather(-1, largest).all())
    assert masks["0"]["bias"].all()


def test_balance_gran_sizes_the_tiles() -> None:
    config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.75}]
    model = seeded(nn.Sequential(nn.Linear(8, 6)))

    _, masks = LevelPruner(model, config_list, mode="balance", balance_gran=[2, 2]).compress()

    tiles = masks["0"]["weight"].reshape(3, 2, 4, 2).transpose(1, 2).flatten(2)
    assert tiles.sum(-1).tolist() == [[1] * 4] * 3


def test_balanced_masks_are_nested_in_later_rounds() -> None:
    model = seeded(nn.Sequential(nn.Linear(8, 4)))
    pruner = LevelPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}], mode="balance")
    pruner.ratio_factor = 0.5
    first = pruner.compress()[1]["0"]["weight"]
    pruner.ratio_factor = 1.0
    model[0].module.weight.data.neg_().add_(3)  # other elements are the smallest now

    second = pruner.compress()[1]["0"]["weight"]

    assert first.reshape(-1, 4).sum(-1).tolist() == [3] * 8
    assert second.reshape(-1, 4).sum(-1).tolist() == [2] * 8
    assert bool((second <= first).all())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"op_names": ["0"], "sparse_ratio": 0.5}, r"does not divide the shape \(4, 3\); exclude"),
        ({"op_names": ["1"], "sparse_threshold": 0.5}, "has sparse_threshold"),
        ({"op_names": ["0", "1"], "total_sparsity": 0.5}, "has global_group_id"),
        ({"op_names": ["1"], "sparse_ratio": 0.5, "granularity": [1, 2]}, "has granularity"),
    ],
)
def test_targets_that_cannot_be_balanced_are_refused(
    entry: dict[str, object], message: str
) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4))

    with pytest.raises(ConfigListError, match=message):
        LevelPruner(model, [entry], mode="balance")

    assert isinstance(model[0], nn.Linear)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="mode must be 'normal' or 'balance', got 'global'"):
        LevelPruner(None, None, mode="global")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="balance_gran needs mode='balance'"):
        LevelPruner(None, None, balance_gran=[4])
    with pytest.raises(ValueError, match="balance_gran must be"):
        LevelPruner(None, None, mode="balance", balance_gran=[0])
