"""Registry of the layers whose sizes share weights."""

from typing import ClassVar

import pytest
from torch import Tensor, nn

from nni.nas.oneshot.pytorch.layer_slicing import Arguments, LayerSlicing
from nni.nas.oneshot.pytorch.slicing_registry import register_layer_slicing, slicing_of


class Gain(nn.Module):
    """Layer of a third party."""


class GainSlicing(LayerSlicing):
    layer: ClassVar[type[nn.Module]] = Gain
    searchable: ClassVar[tuple[str, ...]] = ()

    def sliced_state(self, storage: nn.Module, arguments: Arguments) -> dict[str, Tensor]:
        return {}


def test_registered_layer_is_found_by_its_subclasses() -> None:
    slicing = GainSlicing()

    register_layer_slicing(slicing)

    assert slicing_of(Gain()) is slicing
    assert slicing_of(type("Louder", (Gain,), {})) is slicing


def test_layer_without_rules_has_none() -> None:
    assert slicing_of(nn.Identity()) is None


def test_registry_refuses_a_type() -> None:
    with pytest.raises(TypeError, match="pass an instance"):
        register_layer_slicing(GainSlicing)  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize(
    "kind", [nn.Linear, nn.Conv2d, nn.BatchNorm2d, nn.LayerNorm, nn.MultiheadAttention]
)
def test_layers_of_the_library_have_rules(kind: type[nn.Module]) -> None:
    slicing = slicing_of(kind)

    assert slicing is not None
    assert slicing.layer is kind
