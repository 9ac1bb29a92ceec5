"""Encoder whose attention has four Linear layers, as models of the package transformers have."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int, head_dim: int, *, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, heads * head_dim, bias=bias)
        self.key = nn.Linear(width, heads * head_dim, bias=bias)
        self.value = nn.Linear(width, heads * head_dim, bias=bias)
        self.dense = nn.Linear(heads * head_dim, width, bias=bias)

    def forward(self, tokens: Tensor) -> Tensor:
        query, key, value = (
            layer(tokens).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        return self.dense((scores.softmax(-1) @ value).transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    def __init__(
        self,
        layers: int = 2,
        width: int = 8,
        heads: int = 4,
        head_dim: int = 2,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.attention = nn.ModuleList(
            SelfAttention(width, heads, head_dim, bias=bias) for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.classifier = nn.Linear(width, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        for attention, norm in zip(self.attention, self.norms, strict=True):
            tokens = norm(tokens + attention(tokens))
        return self.classifier(tokens.mean(1))


def encoder(seed: int = 0, layers: int = 2, **sizes: int | bool) -> Encoder:
    """Return an encoder with seeded parameters."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Encoder(layers, **sizes)  # type: ignore[arg-type]  # sizes are int, bias is bool


def names_of(layers: int = 2) -> list[list[str]]:
    """Return the names of the projections of each layer."""
    parts = ("query", "key", "value", "dense")
    return [[f"attention.{layer}.{part}" for part in parts] for layer in range(layers)]


def tokens(width: int = 8) -> Tensor:
    """Return a batch, always the same."""
    return torch.randn(2, 5, width, generator=torch.Generator().manual_seed(1))
