"""Tiny models of each construct, and inputs for them, with random parameters and statistics."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

torch.set_num_threads(1)


def randomised(model: nn.Module, seed: int = 0) -> Any:
    """Return the model in eval mode; every parameter and statistic is random and not zero."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5, generator=generator)
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(generator=generator)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 1.5, generator=generator)
    return model.eval()


def conv(inputs: int, outputs: int, size: int = 3, **options: Any) -> nn.Sequential:
    """Return convolution, norm and activation."""
    options.setdefault("padding", size // 2)
    layer = nn.Conv2d(inputs, outputs, size, **options)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU())


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = conv(3, 8)
        self.conv2 = conv(8, 12)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(12 * 16, 5)

    def forward(self, image: Tensor) -> Tensor:
        return self.fc(self.pool(self.conv2(self.conv1(image))).flatten(1))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 8)
        self.first = nn.Sequential(conv(8, 8), nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8))
        self.second = nn.Sequential(conv(8, 6), nn.Conv2d(6, 8, 1), nn.BatchNorm2d(8))
        self.head = nn.Linear(8, 5)

    def forward(self, image: Tensor) -> Tensor:
        found = self.stem(image)
        found = functional.relu(found + self.first(found))
        found = functional.relu(found + self.second(found))
        return self.head(found.mean((2, 3)))


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 8)
        self.first = conv(8, 4)
        self.second = nn.Sequential(nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 6, 1))
        self.head = nn.Linear(18, 5)

    def forward(self, image: Tensor) -> Tensor:
        found = self.stem(image)
        found = torch.cat([found, self.first(found)], 1)
        found = torch.cat([found, self.second(found)], 1)
        return self.head(functional.adaptive_avg_pool2d(found, 1).flatten(1))


class SqueezeExcite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 8)
        self.depthwise = conv(8, 8, groups=8)
        self.reduce = nn.Conv2d(8, 4, 1)
        self.expand = nn.Conv2d(4, 8, 1)
        self.project = nn.Conv2d(8, 6, 1)
        self.head = nn.Linear(6, 5)

    def forward(self, image: Tensor) -> Tensor:
        found = self.depthwise(self.stem(image))
        scale = functional.silu(self.reduce(found.mean((2, 3), keepdim=True)))
        found = self.project(found * torch.sigmoid(self.expand(scale)))
        return self.head(found.mean((2, 3)))


class Grouped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 16)
        self.grouped = conv(16, 24, groups=4)
        self.transposed = nn.ConvTranspose2d(24, 16, 2, stride=2)
        self.grouped_up = nn.ConvTranspose2d(16, 8, 2, stride=2, groups=2)
        self.head = nn.Linear(8, 5)

    def forward(self, image: Tensor) -> Tensor:
        found = self.transposed(self.grouped(self.stem(image)))
        return self.head(functional.relu(self.grouped_up(found)).mean((2, 3)))


class Shuffled(nn.Module):
    """Halves, one of which is convolved, whose channels are interleaved."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 8)
        self.branch = nn.Sequential(conv(4, 6, 1), conv(6, 6, groups=6), conv(6, 4, 1))
        self.head = nn.Linear(8, 5)

    def forward(self, image: Tensor) -> Tensor:
        left, right = self.stem(image).chunk(2, dim=1)
        found = torch.cat([left, self.branch(right)], 1)
        batch, count, height, width = found.shape
        found = found.view(batch, 2, count // 2, height, width).transpose(1, 2)
        return self.head(found.reshape(batch, count, height, width).mean((2, 3)))


class Reused(nn.Module):
    """A layer that runs twice, and two layers that share a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.twice = nn.Linear(8, 8)
        self.tied = nn.Linear(8, 8, bias=False)
        self.tied.weight = self.twice.weight
        self.head = nn.Linear(8, 5)

    def forward(self, features: Tensor) -> Tensor:
        found = functional.gelu(self.first(features))
        found = functional.gelu(self.twice(functional.gelu(self.twice(found))))
        return self.head(self.tied(found))


class Gated(nn.Module):
    """Gated linear unit, PReLU and pixel shuffle."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.slope = nn.PReLU(8)
        self.up = nn.Conv2d(8, 16, 1)
        self.head = nn.Conv2d(4, 3, 1)

    def forward(self, image: Tensor) -> Tensor:
        found = self.slope(functional.glu(self.stem(image), dim=1))
        return self.head(functional.pixel_shuffle(self.up(found), 2))


class Normalised(nn.Module):
    """Perceptron with LayerNorm on the residual axis."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.norm = nn.LayerNorm(8)
        self.wide = nn.Linear(8, 16)
        self.narrow = nn.Linear(16, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        found = self.embed(tokens)
        return self.head(found + self.narrow(functional.gelu(self.wide(self.norm(found)))))


class Attention(nn.Module):
    """Fused projections; the width of all heads is an attribute."""

    def __init__(self, width: int = 12, heads: int = 4) -> None:
        super().__init__()
        self.num_heads, self.head_dim = heads, width // heads
        self.all_heads = width
        self.scale = self.head_dim**-0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, count, _ = tokens.shape
        found = self.qkv(tokens).reshape(batch, count, 3, self.num_heads, self.head_dim)
        query, key, value = found.permute(2, 0, 3, 1, 4).unbind(0)
        weights = (query @ key.transpose(-2, -1) * self.scale).softmax(-1)
        found = (weights @ value).transpose(1, 2).reshape(batch, count, self.all_heads)
        return self.proj(found)


class WindowAttention(Attention):
    """Attention in windows; sizes are computed from the width of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(9, self.num_heads))
        self.register_buffer("index", torch.arange(16).reshape(4, 4) % 9)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, count, width = tokens.shape
        windows = tokens.view(batch * 2, count // 2, width)
        found = self.qkv(windows)
        found = found.view(batch * 2, count // 2, 3, self.num_heads, width // self.num_heads)
        query, key, value = found.permute(2, 0, 3, 1, 4)
        scores = query * (width // self.num_heads) ** -0.5 @ key.transpose(-2, -1)
        scores = scores + self.table[self.index.view(-1)].view(4, 4, -1).permute(2, 0, 1)
        found = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch * 2, count // 2, width)
        return self.proj(found).view(batch, count, width)


class GroupedQueries(nn.Module):
    """Four heads of queries share two heads of keys and values; positions are rotated."""

    def __init__(self) -> None:
        super().__init__()
        self.head_dim = 4
        self.query, self.key = nn.Linear(12, 16), nn.Linear(12, 8)
        self.value, self.out = nn.Linear(12, 8), nn.Linear(16, 12)
        self.register_buffer("cosine", torch.linspace(0, 1, 32).reshape(8, 4).cos())

    def forward(self, tokens: Tensor) -> Tensor:
        shape = (*tokens.shape[:2], -1, self.head_dim)
        query, key, value = (
            layer(tokens).view(shape).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        query, key = query * self.cosine, key * self.cosine
        batch, heads, count, width = key.shape
        key, value = (
            one[:, :, None].expand(batch, heads, 2, count, width).reshape(batch, -1, count, width)
            for one in (key, value)
        )
        found = functional.scaled_dot_product_attention(query, key, value)
        return self.out(found.transpose(1, 2).flatten(2))


class SlicedQueries(nn.Module):
    """Grouped queries, keys and values of one projection, cut at constant places."""

    def __init__(self) -> None:
        super().__init__()
        self.fused, self.out = nn.Linear(12, 32), nn.Linear(16, 12)

    def forward(self, tokens: Tensor) -> Tensor:
        fused = self.fused(tokens)
        query, key, value = fused[..., :16], fused[..., 16:24], fused[..., 24:]
        query, key, value = (
            one.unflatten(-1, (-1, 4)).transpose(1, 2) for one in (query, key, value)
        )
        found = functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)
        return self.out(found.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    """Embedding, a block with any attention, LayerNorms on the residual axis, and a head."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 12)
        self.position = nn.Parameter(torch.zeros(1, 8, 12))
        self.norm1, self.norm2 = nn.LayerNorm(12), nn.LayerNorm(12)
        self.attention = attention
        self.mlp = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12))
        self.head = nn.Linear(12, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        found = self.embed(tokens) + self.position
        found = found + self.attention(self.norm1(found))
        return self.head((found + self.mlp(self.norm2(found))).mean(1))


class Recurrent(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        layer = {"lstm": nn.LSTM, "gru": nn.GRU}[kind]
        self.cell = layer(6, 8, num_layers=2, batch_first=True, bidirectional=kind == "gru")
        self.head = nn.Linear(16 if kind == "gru" else 8, 5)

    def forward(self, steps: Tensor) -> Tensor:
        return self.head(self.cell(steps)[0][:, -1])


class Auxiliary(nn.Module):
    """Trunk with a second classifier that only training uses."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.head = conv(3, 8), nn.Linear(8, 5)
        self.auxiliary = nn.Sequential(conv(8, 6, 1), nn.Flatten(), nn.Linear(6, 5))

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        found = self.trunk(image).mean((2, 3), keepdim=True)
        first = self.head(found.flatten(1))
        return (first, self.auxiliary(found)) if self.training else (first,)


class Outlook(nn.Module):
    """Attention whose values are patches of pixels, and whose results are sums of patches."""

    def __init__(self) -> None:
        super().__init__()
        self.value, self.weights = nn.Linear(8, 8), nn.Linear(8, 4 * 16)
        self.project, self.norm, self.head = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 5)

    def forward(self, image: Tensor) -> Tensor:
        batch, height, width, channels = image.shape
        patches = functional.unfold(self.value(image).permute(0, 3, 1, 2), 2)
        values = patches.reshape(batch, 4, channels // 4, 4, -1).permute(0, 1, 4, 3, 2)
        weights = self.weights(image[:, 1:, 1:]).reshape(batch, -1, 4, 4, 4).permute(0, 2, 1, 3, 4)
        found = (weights.softmax(-1) @ values).permute(0, 1, 4, 3, 2)
        summed = functional.fold(found.reshape(batch, channels * 4, -1), (height, width), 2)
        return self.head(self.norm(image + self.project(summed.permute(0, 2, 3, 1))))


class Sorted(nn.Module):
    """An operation that mixes channels and has no rule."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.second = nn.Linear(8, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, features: Tensor) -> Tensor:
        found = torch.fft.fft(self.first(features)).real
        return self.head(functional.relu(self.second(found)))


IMAGE = (2, 3, 8, 8)
IMAGE_MODELS: dict[str, type[nn.Module]] = {
    "plain": Plain,
    "residual": Residual,
    "dense": Dense,
    "squeeze-excite": SqueezeExcite,
    "grouped": Grouped,
    "shuffled": Shuffled,
    "gated": Gated,
}


def build(name: str) -> tuple[Any, Tensor]:
    """Return a model by name with random parameters, and inputs for it."""
    torch.manual_seed(0)
    if name in IMAGE_MODELS:
        return randomised(IMAGE_MODELS[name]()), torch.randn(IMAGE)
    if name in TOKEN_MODELS:
        tokens = torch.arange(16).reshape(2, 8) % 11
        return randomised(Transformer(TOKEN_MODELS[name]())), tokens
    if name == "encoder":
        layer = nn.TransformerEncoderLayer(12, 4, 16, batch_first=True)
        return randomised(nn.Sequential(layer, nn.Linear(12, 3))), torch.randn(2, 5, 12)
    if name in {"lstm", "gru"}:
        return randomised(Recurrent(name)), torch.randn(2, 5, 6)
    if name == "outlook":
        return randomised(Outlook()), torch.randn(2, 4, 5, 8)
    if name == "normalised":
        return randomised(Normalised()), torch.arange(10).reshape(2, 5)
    return randomised({"reused": Reused, "sorted": Sorted}[name]()), torch.randn(2, 6)


TOKEN_MODELS: dict[str, type[nn.Module]] = {
    "attention": Attention,
    "windows": WindowAttention,
    "grouped-queries": GroupedQueries,
    "sliced-queries": SlicedQueries,
}
NAMES = [
    *IMAGE_MODELS,
    *TOKEN_MODELS,
    *("encoder", "lstm", "gru", "outlook", "normalised", "reused", "sorted"),
]
