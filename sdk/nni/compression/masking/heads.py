"""Choice of attention heads to prune, by scores. All functions are pure."""

from collections.abc import Sequence

import torch
from torch import Tensor


def head_norms(weights: Sequence[Tensor], width: int, p: float) -> Tensor:
    """Return each head's p-norm of all its weights, averaged over several projections.

    Args:
        weights: `(heads * width, inputs)` each: the projections of query, key and value.
        width: features of a head.
        p: order of the norm, 1 or 2.

    Returns:
        `(heads,)`.

    Examples:
        >>> head_norms([torch.tensor([[1.0], [-2.0], [0.0], [1.0]])], 2, 1)
        tensor([3., 1.])
    """
    norms = [
        torch.linalg.vector_norm(weight.reshape(-1, width * weight.shape[1]), ord=p, dim=1)
        for weight in weights
    ]
    return torch.stack(norms).mean(0)


def lowest_heads(scores: Tensor, kept: Tensor, count: int) -> Tensor:
    """Return a bool tensor of the heads that stay if the `count` lowest go; one always stays.

    Args:
        scores: `(heads,)`; the smallest are pruned first; NaN counts as smallest.
        kept: bool `(heads,)`: heads that an earlier round has not pruned; others go first.
        count: number of heads to prune in all; the last head always stays.

    Returns:
        bool `(heads,)`.

    Examples:
        >>> lowest_heads(torch.tensor([3.0, 1.0, 2.0]), torch.ones(3, dtype=torch.bool), 2)
        tensor([ True, False, False])
    """
    return lowest_heads_of_all([scores], [kept], count)[0]


def lowest_heads_of_all(
    scores: Sequence[Tensor], kept: Sequence[Tensor], count: int
) -> list[Tensor]:
    """Return bool tensors of heads that stay if `count` in all layers go; each layer keeps one.

    Args:
        scores: `(heads,)` of each layer; the smallest are pruned first; NaN counts as smallest.
        kept: bool `(heads,)` of each layer: heads that an earlier round has not pruned; others go
            first.
        count: number of heads to prune in all; each layer keeps its best head, whatever the count.

    Returns:
        bool `(heads,)` for each layer.

    Examples:
        >>> scores = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])]
        >>> lowest_heads_of_all(scores, [one > 0 for one in scores], 2)
        [tensor([False,  True]), tensor([False,  True])]
    """
    heads = [(layer, head) for layer, one in enumerate(scores) for head in range(len(one))]
    values = [torch.nan_to_num(one.double(), nan=-torch.inf).tolist() for one in scores]
    alive = [one.tolist() for one in kept]
    heads.sort(key=lambda one: (alive[one[0]][one[1]], values[one[0]][one[1]]))  # stable
    left = [len(one) for one in scores]
    stays = [torch.ones(len(one), dtype=torch.bool, device=one.device) for one in scores]
    for layer, head in heads:
        if count > 0 and left[layer] > 1:
            stays[layer][head] = False
            left[layer] -= 1
            count -= 1
    return stays
