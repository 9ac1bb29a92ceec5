"""Densely connected cell of NAS-Bench-201: `NasBench201Cell`."""

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor, nn

from nni.mutable import label_scope
from nni.nas.nn.pytorch import LayerChoice, MutableModule
from nni.nas.nn.pytorch.base import module_label

OperatorOfChannels = Callable[[int, int], nn.Module]
"""Function of the numbers of input and output channels."""


class NasBench201Cell(MutableModule):
    """Cell in which each pair of tensors is connected by one searched operator.

    The first tensor is the input; each later one is the sum of an operator on every earlier
    tensor; the last one is the output. With `label="cell"` the operator from tensor `j` to tensor
    `i` has the label `cell/j_i`, whose values are the names of operators, or positions in a list.

    Args:
        op_candidates: functions of the numbers of input and output channels, by name or as a list.
        in_features: channels of the input.
        out_features: channels of all other tensors.
        num_tensors: number of tensors, the input included, from 2.
        label: name of the cell, the scope of the labels above.

    Raises:
        ValueError: `num_tensors` is less than 2.

    Source: Dong and Yang, NAS-Bench-201, 2020, section 2.1.

    Examples:
        >>> cell = NasBench201Cell(
        ...     {"linear": nn.Linear, "none": lambda i, o: nn.Linear(i, o)}, 4, 8, 3, label="cell"
        ... )
        >>> list(cell.simplify())
        ['cell/0_1', 'cell/0_2', 'cell/1_2']
    """

    def __init__(
        self,
        op_candidates: Mapping[str, OperatorOfChannels] | Sequence[OperatorOfChannels],
        in_features: int,
        out_features: int,
        num_tensors: int = 4,
        label: str | None = None,
    ) -> None:
        super().__init__()
        if num_tensors < 2:  # noqa: PLR2004 - input and output
            raise ValueError(f"num_tensors must be >= 2, got {num_tensors}")
        self.label: str = module_label(label, "NasBench201Cell")
        self.layers = nn.ModuleList()
        """Operators into each tensor but the first: `nn.ModuleList` by the tensor they read."""
        with label_scope(self.label):
            for to in range(1, num_tensors):
                self.layers.append(
                    nn.ModuleList(
                        LayerChoice(
                            _built(
                                op_candidates,
                                in_features if at == 0 else out_features,
                                out_features,
                            ),
                            label=f"{at}_{to}",
                        )
                        for at in range(to)
                    )
                )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the last tensor; each is the sum of operators on all earlier ones.

        Args:
            inputs: `(batch, in_features, *)`.

        Returns:
            `(batch, out_features, *)`.
        """
        tensors = [inputs]
        for operators in self.layers:
            assert isinstance(operators, nn.ModuleList)
            outputs = [one(tensor) for one, tensor in zip(operators, tensors, strict=True)]
            tensors.append(sum(outputs[1:], outputs[0]))
        return tensors[-1]


def _built(
    candidates: Mapping[str, OperatorOfChannels] | Sequence[OperatorOfChannels],
    in_features: int,
    out_features: int,
) -> dict[str, nn.Module] | list[nn.Module]:
    if isinstance(candidates, Mapping):
        return {name: build(in_features, out_features) for name, build in candidates.items()}
    return [build(in_features, out_features) for build in candidates]
