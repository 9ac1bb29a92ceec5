"""Contract and registry of layers whose sizes share weights."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nni.nas.oneshot.pytorch.layer_slicing import (
    Arguments,
    LayerSlicing,
    expected_output,
    frozen_layer,
    leading,
    padded,
)


class Gain(nn.Module):
    """Layer of a third party: one factor a channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.arange(1.0, width + 1))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs * self.factor


class GainSlicing(LayerSlicing):
    layer: ClassVar[type[nn.Module]] = Gain
    searchable: ClassVar[tuple[str, ...]] = ("width",)

    def sliced_state(self, storage: nn.Module, arguments: Arguments) -> dict[str, Tensor]:
        assert isinstance(storage, Gain)
        return {"factor": storage.factor[: arguments["width"]]}

    def narrowed(self, value: Any, arguments: Arguments) -> Tensor:
        narrow: Tensor = value[..., : arguments["width"]]
        return narrow


OPTIONS = [{"width": 2}, {"width": 3}]


def test_one_method_suffices_to_run_and_mix_options() -> None:
    slicing = GainSlicing()
    storage = slicing.storage(OPTIONS)

    alone = slicing.run(storage, OPTIONS[0], (torch.ones(2),))
    mixed = slicing.mix(storage, OPTIONS, {}, torch.tensor([0.25, 0.75]), (torch.ones(3),))

    assert torch.equal(alone, torch.tensor([1.0, 2.0]))
    assert torch.equal(mixed, torch.tensor([1.0, 2.0, 2.25]))


def test_frozen_layer_owns_copies_of_the_weights() -> None:
    slicing = GainSlicing()
    storage = slicing.storage(OPTIONS).eval()

    frozen = frozen_layer(slicing, storage, OPTIONS[0])
    with torch.no_grad():
        storage.get_parameter("factor").zero_()

    assert torch.equal(frozen.get_parameter("factor"), torch.tensor([1.0, 2.0]))
    assert not frozen.training


def test_expected_output_pads_pairs_and_keeps_none() -> None:
    outputs = [(torch.ones(1), None), (torch.ones(2), None)]

    first, second = expected_output(outputs, torch.tensor([0.5, 0.5]))

    assert torch.equal(first, torch.tensor([1.0, 0.5]))
    assert second is None


def test_padding_fills_the_end_of_each_dimension() -> None:
    assert padded(torch.ones(1, 1), [2, 3]).tolist() == [[1, 0, 0], [0, 0, 0]]


def test_leading_marks_prefixes() -> None:
    assert leading([1, 3], 3).tolist() == [[1, 0, 0], [1, 1, 1]]
