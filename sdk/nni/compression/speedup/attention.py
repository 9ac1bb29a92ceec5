"""Multi-head attention with fewer heads than its embedding has room for."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class PrunedMultiheadAttention(nn.MultiheadAttention):
    """Drop-in for `torch.nn.MultiheadAttention` after heads were removed.

    The class of torch requires that all heads together are as wide as the embedding. Here
    parameters have the same names; projections of query, key and value are
    `num_heads * head_dim` wide. Fused kernels of `torch.nn.TransformerEncoderLayer` are bypassed.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import prune
        >>> layer = nn.TransformerEncoderLayer(8, 4, 16, batch_first=True)
        >>> smaller, _ = prune(layer, torch.zeros(1, 3, 8), sparsity=0.5)
        >>> type(smaller.self_attn).__name__, smaller.self_attn.num_heads
        ('PrunedMultiheadAttention', 2)
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,  # noqa: FBT001, FBT002 - the signature of torch
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,  # noqa: FBT001, FBT002
        is_causal: bool = False,  # noqa: FBT001, FBT002
    ) -> tuple[Tensor, Tensor | None]:
        """Return attended values and, on request, the attention weights.

        Args:
            query: Shape (target, batch, embedding), batch first or without batch, as in torch.
            key: Shape (source, batch, width of keys).
            value: Shape (source, batch, width of values).
            key_padding_mask: Keys to ignore, boolean or added to the scores.
            need_weights: Whether to return the weights.
            attn_mask: Pairs to ignore, boolean or added to the scores; per pair, or per head.
            average_attn_weights: Whether to average the weights over heads.
            is_causal: Hint that `attn_mask` is causal; the mask itself is applied.

        Returns:
            Outputs of the shape of `query`, and weights or None.
        """
        del is_causal
        batched = query.dim() == 3  # noqa: PLR2004 - with a batch axis
        if not batched:
            query, key, value = (one.unsqueeze(0) for one in (query, key, value))
        elif not self.batch_first:
            query, key, value = (one.transpose(0, 1) for one in (query, key, value))
        heads = [self._heads(one, place) for place, one in enumerate((query, key, value))]
        mask = self._mask(heads, key_padding_mask, attn_mask, batched=batched)
        heads, mask = self._extended(heads, mask)
        scores = heads[0] @ heads[1].transpose(-2, -1) * self.head_dim**-0.5
        weights = functional.softmax(scores if mask is None else scores + mask, dim=-1)
        weights = functional.dropout(weights, self.dropout, self.training)
        output = self.out_proj((weights @ heads[2]).transpose(1, 2).flatten(2))
        shown = weights.mean(dim=1) if average_attn_weights else weights
        if not batched:
            return output.squeeze(0), shown.squeeze(0) if need_weights else None
        if not self.batch_first:
            output = output.transpose(0, 1)
        return output, shown if need_weights else None

    def _heads(self, source: Tensor, place: int) -> Tensor:
        """Return the projection of query (0), key (1) or value (2) by head."""
        fused: Tensor | None = self.in_proj_weight
        separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[place]
        weight = separate if fused is None else fused.chunk(3)[place]
        biases: Tensor | None = self.in_proj_bias
        bias = None if biases is None else biases.chunk(3)[place]
        found = functional.linear(source, weight, bias)
        extra = (None, self.bias_k, self.bias_v)[place]
        if extra is not None:
            found = torch.cat([found, extra.expand(len(found), 1, -1)], dim=1)
        batch, count, _ = found.shape
        return found.view(batch, count, self.num_heads, -1).transpose(1, 2)

    def _mask(
        self,
        heads: list[Tensor],
        padding: Tensor | None,
        mask: Tensor | None,
        *,
        batched: bool,
    ) -> Tensor | None:
        """Return the sum of both masks as an addend of the scores, without extra keys."""
        batch = len(heads[0])
        found = None
        if mask is not None:
            found = _addend(mask, heads[0])
            if found.dim() == 3:  # noqa: PLR2004 - a mask per head
                found = found.reshape(batch, self.num_heads, *found.shape[1:])
        if padding is not None:
            own = _addend(padding, heads[0])
            own = (own if batched else own.unsqueeze(0))[:, None, None, :]
            found = own if found is None else found + own
        return found

    def _extended(
        self, heads: list[Tensor], mask: Tensor | None
    ) -> tuple[list[Tensor], Tensor | None]:
        """Return heads with a key of zeros added, if wanted, and the mask padded to fit."""
        query, key, value = heads
        if self.add_zero_attn:
            key, value = functional.pad(key, (0, 0, 0, 1)), functional.pad(value, (0, 0, 0, 1))
        if mask is not None and mask.shape[-1] < key.shape[-2]:
            mask = functional.pad(mask, (0, key.shape[-2] - mask.shape[-1]))
        return [query, key, value], mask


def _addend(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask that is added to scores: minus infinity where a boolean mask is true."""
    if mask.dtype == torch.bool:
        return torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, float("-inf"))
    return mask.to(like.dtype)
