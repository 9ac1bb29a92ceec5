"""Contractions: sinks, groups and heads."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from nni.compression import prune
from nni.compression.speedup.groups import find_dependencies

HEADS = 4


def products(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    scores = query @ key.transpose(-2, -1) / math.sqrt(8)
    return scores.softmax(-1) @ value


def causal_products(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    future = torch.ones(query.shape[-2], query.shape[-2], dtype=torch.bool).triu(1)
    scores = torch.matmul(query, key.transpose(-2, -1)).masked_fill(future, -1e9)
    return torch.matmul(scores.softmax(-1), value)


def sums_by_index(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    weights = torch.einsum("bhid,bhjd->bhij", query, key).softmax(-1)
    return torch.einsum("bhij,bhjd->bhid", weights, value)


def batched_products(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    flat = [one.flatten(0, 1) for one in (query, key, value)]
    weights = torch.bmm(flat[0], flat[1].transpose(1, 2)).softmax(-1)
    return torch.bmm(weights, flat[2]).view(query.shape)


def products_with_addend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    flat = [one.flatten(0, 1) for one in (query, key, value)]
    scores = torch.baddbmm(torch.zeros(1, 1, 1), flat[0], flat[1].transpose(1, 2), alpha=0.3)
    return torch.bmm(scores.softmax(-1), flat[2]).view(query.shape)


def linear_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return query.relu() @ (key.relu().transpose(-2, -1) @ value)


class Attention(nn.Module):
    """Attention with heads of width 8; their products are a function."""

    def __init__(self, attend: Callable[[Tensor, Tensor, Tensor], Tensor], *, fused: bool) -> None:
        super().__init__()
        self.attend = attend
        self.inputs = nn.ModuleList(
            nn.Linear(32, 96 if fused else 32) for _ in "x" * (3 - 2 * fused)
        )
        self.out = nn.Linear(32, 32)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, count, _ = tokens.shape
        wide = [one(tokens) for one in self.inputs]
        parts = wide[0].chunk(3, dim=-1) if len(wide) == 1 else wide
        heads = [one.view(batch, count, HEADS, -1).transpose(1, 2) for one in parts]
        found = self.attend(*heads).transpose(1, 2).reshape(batch, count, -1)
        return tokens + self.out(found)


@pytest.mark.parametrize(
    "attend",
    [
        products,
        causal_products,
        sums_by_index,
        batched_products,
        products_with_addend,
        linear_attention,
    ],
)
@pytest.mark.parametrize("fused", [False, True])
def test_attention_written_as_products_loses_whole_heads(
    attend: Callable[[Tensor, Tensor, Tensor], Tensor], fused: bool
) -> None:
    torch.manual_seed(0)
    model, tokens = Attention(attend, fused=fused).eval(), torch.randn(2, 6, 32)

    [group] = find_dependencies(model, tokens).groups()
    smaller, report = prune(model, tokens, 0.5)

    assert len(group.units) == HEADS
    widths = {name: one.shape[0] for name, one in smaller.named_parameters()}
    assert sum(widths[name] for name in widths if name.startswith("inputs.")) == 2 * 48
    assert smaller.get_parameter("out.weight").shape == (32, 16)
    assert report.error <= 1e-6


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_each_input_channel_of_a_convolution_meets_the_outputs_of_its_group(
    groups: int, transposed: bool
) -> None:
    kind = nn.ConvTranspose2d if transposed else nn.Conv2d
    layers = [nn.Conv2d(1, 8, 1), kind(8, 12, 1, groups=groups), nn.Conv2d(12, 1, 1)]

    dependencies = find_dependencies(nn.Sequential(*layers), torch.zeros(1, 1, 2, 2))

    [sink] = [one for one in dependencies.sinks if len(one.ids) == 8]
    assert sink.row_ids.shape == (8, 12 // groups)
    assert len(set(sink.row_ids.ravel().tolist())) == 12
    assert len(dependencies.balances) == (0 if groups == 1 else 2)


def test_depthwise_channels_are_no_sink() -> None:
    layers = [nn.Conv2d(1, 4, 1), nn.Conv2d(4, 8, 1, groups=4), nn.Conv2d(8, 1, 1)]

    dependencies = find_dependencies(nn.Sequential(*layers), torch.zeros(1, 1, 2, 2))

    [group] = dependencies.groups()
    assert len(group.units) == 4
    assert ("1.weight", 0) in group.axes


def test_tokens_cannot_be_removed_by_a_product_of_activations() -> None:
    class Mixer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left = nn.Linear(3, 4)
            self.right = nn.Linear(3, 4)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.left(tokens) @ self.right(tokens).transpose(1, 2)

    dependencies = find_dependencies(Mixer(), torch.zeros(1, 5, 3))

    assert dependencies.groups() == []
    assert "two activations are multiplied" in dependencies.reasons()["left.weight"]


def test_heads_on_the_batch_axis_pass_a_convolution() -> None:
    class Pooled(nn.Module):
        """Queries by head, each pooled by the same convolution."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 12), nn.Linear(12, 5)
            self.pool = nn.Conv2d(3, 3, 2, groups=3)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            heads = self.first(tokens).unflatten(-1, (4, 3)).permute(0, 2, 3, 1)
            pooled = self.pool(heads.reshape(-1, 3, 2, 2)).reshape(-1, 12)
            return self.last(pooled)

    dependencies = find_dependencies(Pooled(), torch.zeros(1, 4, 3))

    assert [len(group.units) for group in dependencies.groups()] == [4]


def test_a_grouped_convolution_of_a_fixed_input_keeps_its_kernel() -> None:
    model = nn.Conv2d(8, 8, 1, groups=2)

    dependencies = find_dependencies(model, torch.zeros(1, 8, 2, 2))

    assert dependencies.groups() == []
    assert dependencies.reasons().keys() == {"weight", "bias"}


@pytest.mark.parametrize(("shared", "units"), [(2, 2), (1, 6)])
def test_queries_of_a_group_are_one_unit_with_their_key(shared: int, units: int) -> None:
    """With one key for all, every query is a unit of its own."""

    class Grouped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.last = nn.Linear(3, 24), nn.Linear(24, 5)
            self.key, self.value = nn.Linear(3, 4 * shared), nn.Linear(3, 4 * shared)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            query, key, value = (
                one(tokens).unflatten(-1, (-1, 4)).transpose(1, 2)
                for one in (self.query, self.key, self.value)
            )
            found = nn.functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)
            return self.last(found.transpose(1, 2).flatten(2))

    dependencies = find_dependencies(Grouped(), torch.zeros(2, 5, 3))

    found = {axes: len(one.units) for one in dependencies.groups() for axes in one.axes}
    assert found["query.weight", 0] == units


def test_a_depthwise_kernel_may_be_reshaped_before() -> None:
    class Scan(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)
            self.kernel = nn.Parameter(torch.ones(4, 2))

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            rows = self.first(tokens).transpose(1, 2)
            groups = rows.shape[1]
            found = nn.functional.conv1d(rows, self.kernel.unsqueeze(1), groups=groups)
            return self.last(found.transpose(1, 2))

    [group] = find_dependencies(Scan(), torch.zeros(1, 5, 3)).groups()

    assert len(group.units) == 4
    assert ("kernel", 0) in group.axes


def test_a_weight_with_a_batch_axis_of_one_is_contracted() -> None:
    class Sums(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.heads = nn.Parameter(torch.ones(4, 2, 5))

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return torch.einsum("bth,hnd->btnd", self.first(tokens), self.heads)

    [group] = find_dependencies(Sums(), torch.zeros(1, 5, 3)).groups()

    assert len(group.units) == 4
    assert ("heads", 0) in group.axes


def test_inner_width_of_grouped_experts_is_free() -> None:
    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = (nn.Parameter(torch.ones(2, *one)) for one in ((4, 8), (8, 4)))

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            ends = torch.tensor([2, 6], dtype=torch.int32)
            product = torch.ops.aten._grouped_mm
            return product(product(rows, self.up, ends).relu(), self.down, ends)

    [group] = find_dependencies(Experts(), torch.ones(6, 4)).groups()

    assert len(group.units) == 8
    assert group.axes == (("up", 2), ("down", 1))
