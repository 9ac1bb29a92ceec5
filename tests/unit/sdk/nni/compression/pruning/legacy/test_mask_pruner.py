from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.base import ConfigListError, ModuleWrapper
from nni.compression.pruning.legacy.mask_pruner import LegacyPruner, entries_by_name
from nni.compression.pruning.legacy.weight_masker import WeightMasker

CONFIG = [{"op_types": ["Linear"], "sparsity": 0.5}, {"op_names": ["2"], "sparsity": 0.25}]


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4, bias=False))


class SmallestMasker(WeightMasker):
    """The masker of the documentation: the mask comes from the weight and the sparsity."""

    def calc_mask(
        self, sparsity: float, wrapper: ModuleWrapper, wrapper_idx: int | None = None
    ) -> dict[str, Tensor]:
        weight = wrapper.parameter("weight").detach().abs().flatten()
        mask = torch.ones_like(weight)
        mask[weight.argsort()[: int(len(weight) * sparsity)]] = 0
        return {"weight_mask": mask.reshape_as(wrapper.parameter("weight"))}


class OncePruner(LegacyPruner):
    """The pruner of the documentation: it prunes each layer once."""

    def __init__(self, model: nn.Module, config_list: Any, optimizer: Any = None) -> None:
        super().__init__(model, config_list, optimizer)
        self.set_wrappers_attribute("if_calculated", False)
        self.masker = SmallestMasker(model, self)
        self.calls: list[int] = []

    def calc_mask(self, wrapper: ModuleWrapper, **kwargs: Any) -> Any:
        self.calls.append(kwargs["wrapper_idx"])
        if wrapper.if_calculated:
            return None
        masks = self.masker.calc_mask(wrapper.config["sparsity"], wrapper, kwargs["wrapper_idx"])
        setattr(wrapper, "if_calculated", True)  # noqa: B010 - typed as a module
        return masks


def test_the_pruner_of_the_documentation_masks_each_layer_by_its_entry() -> None:
    model = net()
    pruner = OncePruner(model, CONFIG)

    assert pruner.compress() is model

    masks = pruner.get_masks()
    assert int(masks["0"]["weight"].sum()) == 6
    assert int(masks["2"]["weight"].sum()) == 12
    assert masks["0"]["bias"].all()
    assert pruner.calls == [0, 1]


def test_masks_are_asked_for_after_each_step_and_none_changes_nothing() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pruner = OncePruner(model, CONFIG, optimizer)
    pruner.compress()
    masks = pruner.get_masks()

    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()

    assert pruner.calls == [0, 1, 0, 1]
    assert all(
        torch.equal(pruner.get_masks()[name]["weight"], masks[name]["weight"]) for name in masks
    )


def test_masks_of_a_bias_are_taken_too() -> None:
    class NoBias(LegacyPruner):
        def calc_mask(self, wrapper: ModuleWrapper, **_kwargs: Any) -> Any:
            weight = torch.ones_like(wrapper.parameter("weight"))
            bias: Any = wrapper.module.bias
            return {"weight_mask": weight, "bias_mask": None if bias is None else 0 * bias.detach()}

    pruner = NoBias(net(), CONFIG)
    pruner.compress()

    assert not pruner.get_masks()["0"]["bias"].any()
    assert pruner.get_masks()["0"]["weight"].all()


def test_layers_and_entries_are_listed_as_in_the_reference() -> None:
    model = net()
    pruner = OncePruner(model, CONFIG)

    (first, entry), (second, _) = pruner.get_modules_to_compress()

    assert (first.name, first.type, entry) == ("0", "Linear", CONFIG[0])
    assert [one.name for one in pruner.get_modules_wrapper()] == ["0", "2"]
    assert pruner.get_modules_wrapper()[0].type == "Linear"
    assert pruner.select_config(second) == CONFIG[1]
    assert pruner.select_config(second._replace(name="1")) is None
    pruner.unwrap_model()
    assert isinstance(model[0], nn.Linear)


def test_tasks_run_before_and_after_a_step() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pruner = OncePruner(model, CONFIG, optimizer)
    seen: list[str] = []
    pruner.patch_optimizer_before(lambda: seen.append("before"))
    pruner.patch_optimizer(lambda: seen.append("after"), lambda: seen.append("last"))

    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()

    assert seen == ["before", "after", "last"]
    with pytest.raises(RuntimeError, match="OncePruner has no optimizer"):
        OncePruner(net(), CONFIG).patch_optimizer(pruner.update_mask)


def test_a_configuration_that_the_algorithm_refuses_leaves_the_model() -> None:
    class Refusing(OncePruner):
        def validate_config(self, model: nn.Module, config_list: Any) -> None:
            raise ConfigListError("config_list", f"has {len(config_list)} entries")

    model = net()
    with pytest.raises(ConfigListError, match="has 2 entries"):
        Refusing(model, CONFIG)

    assert isinstance(model[0], nn.Linear)


def test_the_exported_state_has_zeros_where_the_masks_are(tmp_path: Path) -> None:
    pruner = OncePruner(net(), CONFIG)
    pruner.compress()
    pruner.update_epoch(0)

    pruner.export_model(tmp_path / "model.pth", tmp_path / "masks.pth")

    state = torch.load(tmp_path / "model.pth", weights_only=True)
    assert list(state) == ["0.weight", "0.bias", "2.weight"]
    assert int((state["0.weight"] == 0).sum()) == 6


def test_the_first_entry_decides_in_lists_of_nni_3() -> None:
    entries = [
        {"op_names": ["0"], "sparse_ratio": 0.25},
        {"op_types": ["Linear"], "sparse_ratio": 0.5},
    ]

    assert entries_by_name(net(), entries) == {"0": entries[0], "2": entries[1]}
