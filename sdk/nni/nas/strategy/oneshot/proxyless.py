"""ProxylessNAS: gradient descent on the probabilities of sampled paths.

Source: Cai, Zhu, Han, ProxylessNAS: Direct Neural Architecture Search on Target Task and Hardware,
2019.
"""

from __future__ import annotations

from typing import Any

from nni.mutable import Sample
from nni.nas.nn.pytorch import Cell
from nni.nas.oneshot.pytorch.differentiable_training import DifferentiableLightningModule
from nni.nas.oneshot.pytorch.gated_modules import GatedWeights, gated_hook
from nni.nas.oneshot.pytorch.supernet import HookResult, Memo, MutationHook
from nni.nas.strategy.oneshot.darts import DARTS


class Proxyless(DARTS):
    """Search that computes one sampled path in each step, with the memory of one path.

    Supports `LayerChoice` of positional inputs, `InputChoice` of one input, and `Repeat` whose
    depth is one choice; no `Cell`, and no layer with mutable arguments.

    Args:
        **kwargs: arguments of `DARTS`.

    Examples:
        >>> Proxyless(warmup_epochs=1).status.value
        'empty'
    """

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401 - those of DARTS
        super().__init__(**kwargs)

    def new_architecture(self) -> GatedWeights:
        """Return new logits without labels, whose weights are one-hot samples."""
        return GatedWeights()

    def default_mutation_hooks(self) -> list[MutationHook]:
        """Return the hooks that convert primitives to gates."""
        return [gated_hook, refuse_cells]

    def export(self, *, sample: bool = False) -> Sample:
        """Return the most probable architecture, or one drawn from the distribution.

        Args:
            sample: true: draw one from the learned probabilities, as NNI 3.0 did.

        Returns:
            Values by label; by default the most probable ones.
        """
        module = self.oneshot_module
        assert isinstance(module, DifferentiableLightningModule)
        return module.export_sampled() if sample else module.export()


def refuse_cells(
    module: Any,  # noqa: ANN401 - any module
    name: str,
    memo: Memo,
    arguments: dict[str, Any],
) -> HookResult:
    """Raise TypeError for a cell; return None for other modules.

    Args:
        module: any module.
        name: its path from the root.
        memo: not used.
        arguments: arguments of the strategy, whose name is in the error.

    Returns:
        None.

    Raises:
        TypeError: the module is a cell.
    """
    del memo
    if isinstance(module, Cell):
        raise TypeError(f"Cell at {name!r} is not supported by {arguments['strategy']}; use DARTS")
    return None
