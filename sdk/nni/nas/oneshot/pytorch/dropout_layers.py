"""Rates of dropout among which a supernet chooses; there are no weights to share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional

from nni.nas.oneshot.pytorch.layer_slicing import Arguments, LayerSlicing

_FUNCTIONS: dict[type[nn.Module], Callable[[Tensor, float, bool], Tensor]] = {
    nn.Dropout: functional.dropout,
    nn.Dropout1d: functional.dropout1d,
    nn.Dropout2d: functional.dropout2d,
    nn.Dropout3d: functional.dropout3d,
    nn.AlphaDropout: functional.alpha_dropout,
    nn.FeatureAlphaDropout: functional.feature_alpha_dropout,
}
DROPOUTS: Sequence[type[nn.Module]] = tuple(_FUNCTIONS)
"""Types of layers that `DropoutSlicing` knows."""


class DropoutSlicing(LayerSlicing):
    """Rules that apply the dropout rate of one option, or mix the outputs at all rates.

    The layer computes out of place, also with `inplace=True`: other options read its input.

    Args:
        layer: one of `DROPOUTS`.
    """

    searchable: ClassVar[tuple[str, ...]] = ("p", "inplace")

    def __init__(self, layer: type[nn.Module] = nn.Dropout) -> None:
        self.layer = layer  # type: ignore[misc]  # one instance for each type

    def sliced_state(self, storage: nn.Module, arguments: Arguments) -> dict[str, Tensor]:
        """Return an empty dict: these layers have no weights."""
        del storage, arguments
        return {}

    def run(self, storage: nn.Module, arguments: Arguments, inputs: tuple[Any, ...]) -> Tensor:
        """Return the output at the rate of one option; the input itself in evaluation."""
        (features,) = inputs
        return _FUNCTIONS[self.layer](features, arguments.get("p", 0.5), storage.training)
