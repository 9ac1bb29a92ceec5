from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base.pruner import Pruner, TargetKey
from nni.compression.config.settings import ConfigListError
from nni.compression.pruning import L1NormPruner, LevelPruner

HALF = [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]


def conv_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.Conv2d(20, 4, 3))


@pytest.mark.claim("compression", 12)
def test_half_of_the_filters_are_zero_in_mask_and_after_a_pass_in_the_weight() -> None:
    pruner = L1NormPruner(conv_net(), [{"op_names": ["0"], "sparse_ratio": 0.5}])

    model, masks = pruner.compress()
    model(torch.randn(1, 1, 8, 8))

    gone = masks["0"]["bias"] == 0
    assert int(gone.sum()) == 10
    assert torch.equal(masks["0"]["weight"].amax((1, 2, 3)) == 0, gone)
    weight = pruner.get_modules_wrapper()["0"].parameter("weight")
    assert torch.equal(weight.abs().sum((1, 2, 3)) == 0, gone)


@pytest.mark.claim("compression", 13)
def test_an_exported_model_has_the_original_keys_and_zeros(tmp_path: Path) -> None:
    keys = list(conv_net().state_dict())
    pruner = L1NormPruner(conv_net(), HALF)
    _, masks = pruner.compress()

    pruner.export_model(tmp_path / "model.pt", tmp_path / "masks.pt")

    state = torch.load(tmp_path / "model.pt", weights_only=True)
    saved = torch.load(tmp_path / "masks.pt", weights_only=True)
    assert list(state) == keys
    assert pruner.is_wrapped
    assert set(saved["0"]) == {"weight", "bias"}
    for name in ("0", "2"):
        assert torch.equal(saved[name]["weight"], masks[name]["weight"])
        assert not state[f"{name}.weight"][masks[name]["weight"] == 0].any()


def test_an_export_leaves_the_weights_of_the_model(tmp_path: Path) -> None:
    pruner = L1NormPruner(conv_net(), HALF)
    pruner.compress()
    before = [one.clone() for one in pruner.bound_model.parameters()]

    pruner.export_model(tmp_path / "model.pt")

    assert all(map(torch.equal, before, pruner.bound_model.parameters()))


def test_masks_are_loaded_from_a_file_or_a_dict(tmp_path: Path) -> None:
    pruner = L1NormPruner(conv_net(), HALF)
    _, masks = pruner.compress()
    pruner.export_model(tmp_path / "model.pt", tmp_path / "masks.pt")
    one, other = L1NormPruner(conv_net(), HALF), L1NormPruner(conv_net(), HALF)

    one.load_masks(tmp_path / "masks.pt")
    other.load_masks({**masks, "2": {"weight": masks["2"]["weight"], "bias": None}})

    assert torch.equal(one.get_masks()["2"]["bias"], masks["2"]["bias"])
    assert other.get_masks()["2"]["bias"].all()
    with pytest.raises(KeyError, match="no wrapped module is named 'gone'"):
        one.update_masks({"gone": {}})


def test_generating_masks_sets_none() -> None:
    pruner = L1NormPruner(conv_net(), HALF)

    generated = pruner.generate_masks()

    assert not generated["0"]["weight"].all()
    assert pruner.get_masks()["0"]["weight"].all()


def test_a_second_round_keeps_what_the_first_has_masked() -> None:
    first = [{"op_names": ["0"], "sparse_ratio": 0.25}]
    second = [{"op_names": ["0"], "sparse_ratio": 0.5}]
    pruner = LevelPruner(conv_net(), first)
    model, masks = pruner.compress()
    model(torch.ones(1, 1, 8, 8))
    pruner.unwrap_model()

    again = LevelPruner(model, second)
    again.load_masks(masks)
    _, nested = again.compress()

    assert not (nested["0"]["weight"].bool() & ~masks["0"]["weight"].bool()).any()
    assert nested["0"]["weight"].mean() == 0.5


def test_remaining_slices_are_counted() -> None:
    pruner = L1NormPruner(conv_net(), [{"op_names": ["0"], "sparse_ratio": 0.5}])
    pruner.compress()

    assert pruner.get_pruned_weights() == {"0": (10, 20)}
    assert pruner.get_pruned_weights(dim=2) == {"0": (5, 5)}


def test_a_bias_is_aligned_with_the_slices_of_its_weight() -> None:
    rows = LevelPruner(
        nn.Sequential(nn.Linear(2, 4)),
        [{"op_types": ["Linear"], "sparse_ratio": 0.5, "granularity": [2, -1]}],
    )
    _, masks = rows.compress()

    assert torch.equal(masks["0"]["bias"], masks["0"]["weight"][:, 0])
    assert masks["0"]["bias"].sum() == 2


def test_a_grouped_transposed_convolution_masks_the_bias_of_all_groups() -> None:
    model = nn.Sequential(nn.ConvTranspose2d(4, 6, 3, groups=2))
    pruner = L1NormPruner(model, [{"op_types": ["ConvTranspose2d"], "sparse_ratio": 0.4}])

    _, masks = pruner.compress()

    assert masks["0"]["weight"][0, :, 0, 0].tolist() == masks["0"]["bias"][:3].tolist()
    assert masks["0"]["bias"][:3].tolist() == masks["0"]["bias"][3:].tolist()
    assert masks["0"]["bias"].sum() == 4


def test_a_target_may_be_aligned_with_another_module() -> None:
    align = {"module_name": "0", "target_name": "weight", "dims": [0]}
    entries: list[dict[str, object]] = [
        {"op_names": ["0"], "sparse_ratio": 0.5},
        {"op_names": ["1"], "target_names": ["weight", "bias"], "align": align},
    ]
    pruner = L1NormPruner(nn.Sequential(nn.Conv2d(1, 4, 1), nn.BatchNorm2d(4)), entries)

    _, masks = pruner.compress()

    assert torch.equal(masks["1"]["weight"], masks["0"]["bias"])
    assert torch.equal(masks["1"]["bias"], masks["0"]["bias"])


def test_an_alignment_with_what_is_no_target_is_refused() -> None:
    align = {"module_name": "9", "target_name": "weight"}
    config_list = [{"op_names": ["0"], "target_settings": {"weight": {"align": align}}}]
    pruner = L1NormPruner(conv_net(), config_list)

    with pytest.raises(ConfigListError, match="aligned with weight of 9, which is no target"):
        pruner.compress()


def test_a_granularity_that_does_not_fit_is_refused_and_the_model_restored() -> None:
    model = conv_net()

    with pytest.raises(ConfigListError, match=r"target weight of 0: granularity \(3,\) does not"):
        LevelPruner(model, [{"op_names": ["0"], "sparse_ratio": 0.5, "granularity": [3]}])
    assert type(model[0]) is nn.Conv2d


def test_targets_that_are_no_parameters_are_refused() -> None:
    config_list = [{"op_names": ["0"], "sparse_ratio": 0.5, "target_names": ["_output_"]}]

    with pytest.raises(ConfigListError, match="L1NormPruner masks parameters only"):
        L1NormPruner(conv_net(), config_list)


def test_fine_tuning_needs_an_evaluator() -> None:
    with pytest.raises(ValueError, match="need an evaluator; pass one"):
        L1NormPruner(conv_net(), HALF).compress(max_steps=3)


def test_a_metric_of_another_shape_is_refused() -> None:
    class Wrong(Pruner):
        def calculate_metrics(self) -> dict[TargetKey, Tensor]:
            return {("0", "weight"): torch.ones(3)}

    with pytest.raises(ValueError, match=r"metric of 0\.weight must have shape \(20, 1, 5, 5\)"):
        Wrong(conv_net(), [{"op_names": ["0"], "sparse_ratio": 0.5}]).compress()


def test_a_state_dict_of_the_unwrapped_model_is_loaded() -> None:
    model, other = conv_net(), conv_net()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.fill_(2)
    pruner = L1NormPruner(model, HALF)
    pruner.compress()

    pruner.load_model_state_dict(other.state_dict())

    assert pruner.is_wrapped
    pruner.unwrap_model()
    assert all(bool((one == 2).all()) for one in model.parameters())


def test_remaining_slices_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    pruner = L1NormPruner(conv_net(), [{"op_names": ["0"], "sparse_ratio": 0.5}])
    pruner.compress()

    with caplog.at_level("INFO"):
        assert pruner.show_pruned_weights() == {"0": (10, 20)}

    assert "0: 10 of 20 slices of dimension 0 stay" in caplog.text
