"""Shared weights of multi-head attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.nas.oneshot.pytorch.layer_slicing import (
    Arguments,
    LayerSlicing,
    Plan,
    expected_output,
)

PARTS = ("q", "k", "v")
"""Projections of the query, the key and the value, in the order of `in_proj_weight`."""

OPTIONAL: tuple[Any, ...] = (None, True, None, True, False)
"""Defaults of the arguments after the value, in the order of the forward pass."""


class AttentionSlicing(LayerSlicing):
    """Rules that share the first rows and columns of each projection of `MultiheadAttention`.

    The heads of an option divide its own embedding, so that one position of a projection may
    belong to different heads in different options.
    """

    layer: ClassVar[type[nn.Module]] = nn.MultiheadAttention
    searchable: ClassVar[tuple[str, ...]] = ("embed_dim", "num_heads", "kdim", "vdim", "dropout")

    def storage(self, options: Sequence[Arguments]) -> nn.Module:
        """Return a new attention of one head with the largest sizes of embedding, key and value."""
        embedding = max(option["embed_dim"] for option in options)
        sizes = [widths(option) for option in options]
        return nn.MultiheadAttention(
            **{
                **options[0],
                "embed_dim": embedding,
                "num_heads": 1,
                "kdim": max(key for _, key, _ in sizes),
                "vdim": max(value for _, _, value in sizes),
            }
        )

    def sliced_state(self, storage: nn.Module, arguments: Arguments) -> dict[str, Tensor]:
        """Return slices of the first rows and columns of each projection, by parameter name."""
        assert isinstance(storage, nn.MultiheadAttention)
        sizes = widths(arguments)
        rows = sizes[0]
        weights = [
            weight[:rows, :columns]
            for weight, columns in zip(_projections(storage), sizes, strict=True)
        ]
        state: dict[str, Tensor] = {"out_proj.weight": storage.out_proj.weight[:rows, :rows]}
        if len(set(sizes)) == 1:
            state["in_proj_weight"] = torch.cat(weights)
        else:
            for part, weight in zip(PARTS, weights, strict=True):
                state[f"{part}_proj_weight"] = weight
        if storage.in_proj_bias is not None:
            parts = storage.in_proj_bias.chunk(len(PARTS))
            state["in_proj_bias"] = torch.cat([part[:rows] for part in parts])
            state["out_proj.bias"] = storage.out_proj.bias[:rows]
        if storage.bias_k is not None and storage.bias_v is not None:
            state["bias_k"] = storage.bias_k[..., :rows]
            state["bias_v"] = storage.bias_v[..., :rows]
        return state

    def run(
        self, storage: nn.Module, arguments: Arguments, inputs: tuple[Any, ...]
    ) -> tuple[Tensor, Tensor | None]:
        """Return output and attention weights of one option.

        Args:
            storage: layer that holds the weights.
            arguments: arguments of the option.
            inputs: query, key, value, and in this order, as far as given, `key_padding_mask`,
                `need_weights`, `attn_mask`, `average_attn_weights` and `is_causal`.

        Returns:
            Output of the size of the option; weights, or None if they are not needed.
        """
        assert isinstance(storage, nn.MultiheadAttention)
        query, key, value, *_ = inputs
        padding, needed, mask, average, causal = inputs[3:] + OPTIONAL[len(inputs) - 3 :]
        state = self.sliced_state(storage, arguments)
        swapped = storage.batch_first and query.dim() == 3  # noqa: PLR2004 - batch, length, width
        if swapped:
            query, key, value = (part.transpose(0, 1) for part in (query, key, value))
        output, weights = functional.multi_head_attention_forward(
            query,
            key,
            value,
            arguments["embed_dim"],
            arguments["num_heads"],
            state.get("in_proj_weight"),
            state.get("in_proj_bias"),
            state.get("bias_k"),
            state.get("bias_v"),
            storage.add_zero_attn,
            arguments.get("dropout", 0.0),
            state["out_proj.weight"],
            state.get("out_proj.bias"),
            training=storage.training,
            key_padding_mask=padding,
            need_weights=needed,
            attn_mask=mask,
            use_separate_proj_weight="in_proj_weight" not in state,
            q_proj_weight=state.get("q_proj_weight"),
            k_proj_weight=state.get("k_proj_weight"),
            v_proj_weight=state.get("v_proj_weight"),
            average_attn_weights=average,
            is_causal=causal,
        )
        return (output.transpose(0, 1) if swapped else output), weights

    def mix(
        self,
        storage: nn.Module,
        options: Sequence[Arguments],
        plan: Plan,
        probabilities: Tensor,
        inputs: tuple[Any, ...],
    ) -> Any:  # noqa: ANN401 - a pair of a tensor and a tensor or None
        """Return the expected output and the expected attention weights over all options."""
        del plan
        query, key, value, *rest = inputs
        outputs = []
        for option in options:
            sizes = widths(option)
            parts = zip((query, key, value), sizes, strict=True)
            cut = (part[..., :size] for part, size in parts)
            outputs.append(self.run(storage, option, (*cut, *rest)))
        return expected_output(outputs, probabilities)


def widths(arguments: Arguments) -> tuple[int, int, int]:
    """Return the sizes of query, key and value; without a size of their own, the embedding's.

    Args:
        arguments: arguments of an attention.

    Returns:
        `(embed_dim, kdim, vdim)`.
    """
    embedding: int = arguments["embed_dim"]
    key, value = (arguments.get(name) for name in ("kdim", "vdim"))
    return embedding, embedding if key is None else key, embedding if value is None else value


def _projections(storage: nn.MultiheadAttention) -> tuple[Tensor, ...]:
    """Return the weights of the projections of query, key and value."""
    joint: Tensor | None = storage.in_proj_weight
    if joint is not None:
        return joint.chunk(len(PARTS))
    return storage.q_proj_weight, storage.k_proj_weight, storage.v_proj_weight
