"""Observation of the outputs of attention heads while the model runs or trains."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

Statistic = Literal["l1_activation", "l2_activation", "taylorfo"]


class HeadObserver:
    """Recorder of sums over the outputs of heads, which output projections take as input.

    Args:
        width: features of a head.
        statistic: `l1_activation`: sum of absolute values; `l2_activation`: root of the sum of
            squares; `taylorfo`: sum of |output x gradient|.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pruning.head_observer import HeadObserver
        >>> projection, observer = nn.Linear(4, 2), HeadObserver(2, "l1_activation")
        >>> handles = observer.attach({"out": projection})
        >>> _ = projection(torch.tensor([[1.0, -1.0, 3.0, 0.0]]))
        >>> observer.scores("out")
        tensor([2., 3.], dtype=torch.float64)
    """

    def __init__(self, width: int, statistic: Statistic) -> None:
        self._width = width
        self._statistic = statistic
        self._sums: dict[str, Tensor] = {}

    def attach(self, projections: Mapping[str, nn.Module]) -> list[RemovableHandle]:
        """Reset the sums, and register hooks on output projections; return the hooks.

        Args:
            projections: output projections by name.

        Returns:
            Hooks, which the caller removes.
        """
        self._sums = {}
        return [
            module.register_forward_pre_hook(partial(self._observe, name))
            for name, module in projections.items()
        ]

    def scores(self, name: str) -> Tensor:
        """Return the statistic of each head of a projection; raise if it got no data.

        Args:
            name: name of the output projection.

        Returns:
            `(heads,)`.

        Raises:
            RuntimeError: nothing was observed.
        """
        if name not in self._sums:
            raise RuntimeError(
                f"{name} got no data: forward_runner, trainer or evaluator must run the model that "
                "it is given, for taylorfo backwards as well"
            )
        found = self._sums[name]
        return found.sqrt() if self._statistic == "l2_activation" else found

    def _observe(self, name: str, _module: nn.Module, inputs: tuple[Any, ...]) -> None:
        output: Tensor = inputs[0]
        if self._statistic != "taylorfo":
            self._add(name, output.detach())
        elif output.requires_grad:
            values = output.detach()
            output.register_hook(lambda gradient: self._add(name, values * gradient.detach()))  # type: ignore[no-untyped-call]  # torch has no types here

    def _add(self, name: str, values: Tensor) -> None:
        heads = values.double().reshape(-1, values.shape[-1] // self._width, self._width)
        squared = self._statistic == "l2_activation"
        found = (heads.square() if squared else heads.abs()).sum((0, 2))
        self._sums[name] = self._sums[name] + found if name in self._sums else found
