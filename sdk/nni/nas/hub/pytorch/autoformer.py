"""Space of vision transformers: `AutoFormer`."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.mutable import Categorical, MutableExpression
from nni.nas.hub.pytorch.searched_models import SpaceWithSearchedModels
from nni.nas.nn.pytorch import (
    MutableConv2d,
    MutableLayerNorm,
    MutableLinear,
    Repeat,
)


class AutoFormer(SpaceWithSearchedModels, label_prefix="autoformer"):
    """Vision transformer with searched embedding, depth, heads and feed-forward sizes.

    The labels are `autoformer/embed_dim`, `autoformer/depth`, and of each block
    `autoformer/num_heads_{i}` and `autoformer/mlp_ratio_{i}`.

    Args:
        search_embed_dim: features of a token to choose from.
        search_mlp_ratio: features inside the feed-forward part, relative to those of a token.
        search_num_heads: numbers of heads to choose from.
        search_depth: numbers of blocks to choose from, in turn without gaps.
        img_size: height and width of the images.
        patch_size: height and width of a patch, which becomes a token.
        head_dim: features of a head.
        num_labels: number of classes.
        drop_rate: dropout inside the feed-forward parts.

    Raises:
        ValueError: `img_size` is no multiple of `patch_size`.

    Source: Chen et al., AutoFormer: Searching Transformers for Visual Recognition, 2021.
    Departures: positions are absolute only; that of the class token is the token itself.

    Examples:
        >>> space = AutoFormer((8, 16), (2.0,), (1, 2), (1, 2), 8, 4, head_dim=4, num_labels=10)
        >>> list(space.simplify())
        ['autoformer/embed_dim', 'autoformer/depth', ... 'autoformer/mlp_ratio_1']
        >>> space(torch.zeros(2, 3, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(  # noqa: PLR0913 - what is searched
        self,
        search_embed_dim: Sequence[int] = (192, 216, 240),
        search_mlp_ratio: Sequence[float] = (3.0, 3.5, 4.0),
        search_num_heads: Sequence[int] = (3, 4),
        search_depth: Sequence[int] = (12, 13, 14),
        img_size: int = 224,
        patch_size: int = 16,
        head_dim: int = 64,
        num_labels: int = 1000,
        drop_rate: float = 0.0,
    ) -> None:
        super().__init__()
        if img_size % patch_size:
            raise ValueError(f"img_size must be a multiple of {patch_size}, got {img_size}")
        width: Any = self.add_mutable(Categorical(search_embed_dim, label="embed_dim"))
        depth = self.add_mutable(Categorical(search_depth, label="depth"))
        self.patches = MutableConv2d(3, width, patch_size, stride=patch_size)
        self.tokens = (img_size // patch_size) ** 2 + 1
        # A layer from the number of a token to its features, whose sizes supernets can cut.
        self.positions = MutableLinear(self.tokens, width, bias=False)
        self.blocks = Repeat(
            partial(
                _block, width, list(search_num_heads), list(search_mlp_ratio), head_dim, drop_rate
            ),
            depth,
        )
        self.norm = MutableLayerNorm(width)
        self.head = MutableLinear(width, num_labels)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits `(batch, num_labels)` of images.

        Args:
            inputs: `(batch, 3, img_size, img_size)`.

        Returns:
            `(batch, num_labels)`.
        """
        patches = self.patches(inputs).flatten(2).transpose(1, 2)
        positions = self.positions(torch.eye(self.tokens).to(patches))
        # The class token is the embedding of the first position alone.
        tokens = torch.cat([torch.zeros_like(patches[:, :1]), patches], 1) + positions
        output: Tensor = self.head(self.norm(self.blocks(tokens))[:, 0])
        return output


AutoformerSpace = AutoFormer
"""Another name of `AutoFormer`."""


class TransformerBlock(nn.Module):
    """Attention and feed-forward part, each normalized before and added to its input.

    Args:
        width: features of a token; number or expression.
        num_heads: number of heads; number or expression.
        mlp_ratio: features inside the feed-forward part, relative to those of a token.
        head_dim: features of a head.
        drop_rate: dropout inside the feed-forward part.

    Examples:
        >>> TransformerBlock(8, 2, 2.0, head_dim=4)(torch.zeros(1, 5, 8)).shape
        torch.Size([1, 5, 8])
    """

    def __init__(
        self,
        width: Any,  # noqa: ANN401 - number or expression
        num_heads: Any,  # noqa: ANN401 - number or expression
        mlp_ratio: Any,  # noqa: ANN401 - number or expression
        head_dim: int = 64,
        drop_rate: float = 0.0,
    ) -> None:
        super().__init__()
        self.head_dim = head_dim
        inner = num_heads * head_dim
        self.attention_norm = MutableLayerNorm(width)
        self.query, self.key, self.value = (MutableLinear(width, inner) for _ in range(3))
        self.projection = MutableLinear(inner, width)
        hidden = MutableExpression.to_int(mlp_ratio * width)
        self.feed_forward = nn.Sequential(
            MutableLayerNorm(width),
            MutableLinear(width, hidden),
            nn.GELU(),
            nn.Dropout(drop_rate),
            MutableLinear(hidden, width),
            nn.Dropout(drop_rate),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the tokens after attention and feed-forward part, in their shape.

        Args:
            tokens: `(batch, tokens, width)`.

        Returns:
            Of the same shape.
        """
        normed = self.attention_norm(tokens)
        # The number of heads follows from the shape: a shared layer may have been cut.
        query, key, value = (
            part(normed).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        attended = functional.scaled_dot_product_attention(query, key, value)
        tokens = tokens + self.projection(attended.transpose(1, 2).flatten(2))
        output: Tensor = tokens + self.feed_forward(tokens)
        return output


def _block(
    width: Any,  # noqa: ANN401 - number or expression
    num_heads: list[int],
    mlp_ratios: list[float],
    head_dim: int,
    drop_rate: float,
    index: int,
) -> nn.Module:
    return TransformerBlock(
        width,
        Categorical(num_heads, label=f"num_heads_{index}"),
        Categorical(mlp_ratios, label=f"mlp_ratio_{index}"),
        head_dim,
        drop_rate,
    )
