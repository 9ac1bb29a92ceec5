"""How small and how fast are transformers whose residual axis is normalised, beside Torch-Pruning?

ViT-B/16 and BERT-base with a classifier and random weights. LayerNorm computes statistics over the
residual axis, so that a model without some of it is another function. Printed are

- `whole`: `nni.compression.prune(model, x, 0.5)`, which leaves that axis whole and is exact, beside
  Torch-Pruning with the ratio at which its model has the same number of operations;
- `shrunk`: the same with `allow_norm_change=True`, beside Torch-Pruning with the ratio 0.5.

Operations are those of matrix products and convolutions. Times are as in `bench_compression_speed`.

`--only NAME` picks models by name, `--runs N` sets the number of timed passes.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nni.compression import prune
from tests.benchmarks.bench_compression_int8 import Bert, sentences
from tests.benchmarks.bench_compression_speed import PEER, RATIO, speed_figures
from tests.benchmarks.compression_models import REMEDY, Subject, missing_libraries, randomise
from tests.benchmarks.figures import Figure, at_most, print_figures
from tests.benchmarks.measure import print_header

SEED: Final = 0
EXACT: Final = 1e-4
HEADS: Final = 12
"""Attention heads of both models. The peer leaves their number, so widths are multiples of it."""
STEPS: Final = 7
"""Halvings of the ratio of the peer: less than one multiple of the heads remains."""
CLOSE: Final = 1.03
"""Times of the peer's operations that count as no more: widths are multiples of the heads."""

Inputs = tuple[Tensor, ...]


class BertClassifier(nn.Module):
    """BERT-base with a classifier of two classes on the first token."""

    def __init__(self) -> None:
        super().__init__()
        self.body = Bert()
        self.heads = nn.Linear(self.body.bert.config.hidden_size, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        found: Tensor = self.heads(self.body(input_ids, attention_mask)[:, 0])
        return found


def vision_transformer() -> tuple[nn.Module, Inputs]:
    subject = Subject("vit_b_16", 224)
    return subject.build(), (subject.images(SEED),)


def language_model() -> tuple[nn.Module, Inputs]:
    torch.manual_seed(SEED)
    return BertClassifier().eval(), tuple(sentences(SEED).values())


SUBJECTS: Final[Mapping[str, Callable[[], tuple[nn.Module, Inputs]]]] = {
    "vit_b_16": vision_transformer,
    "bert_base": language_model,
}


def operations(model: nn.Module, inputs: Inputs) -> int:
    """Return the floating-point operations of matrix products and convolutions of one pass."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(value=False)  # fused operations are not counted
    try:
        with (
            torch.no_grad(),
            sdpa_kernel(SDPBackend.MATH),
            FlopCounterMode(display=False) as counter,
        ):
            model(*inputs)
    finally:
        torch.backends.mha.set_fastpath_enabled(value=fast)
    return int(counter.get_total_flops())


def pruned_by_peer(model: nn.Module, inputs: Inputs, ratio: float) -> nn.Module:
    """Return a copy that Torch-Pruning has pruned by the L1 norm of groups, all widths together."""
    peer: Any = importlib.import_module(PEER)
    smaller: Any = copy.deepcopy(model)
    peer.pruner.MagnitudePruner(
        smaller,
        inputs,
        importance=peer.importance.GroupMagnitudeImportance(p=1),
        pruning_ratio=ratio,
        round_to=HEADS,
        ignored_layers=[smaller.heads],
    ).step()
    if hasattr(smaller, "conv_proj"):
        smaller.hidden_dim = smaller.conv_proj.out_channels
    for module in smaller.modules():
        if hasattr(module, "all_head_size"):
            module.all_head_size = module.query.out_features
            module.attention_head_size = module.all_head_size // module.num_attention_heads
    return smaller.eval()  # type: ignore[no-any-return]


def peer_of_size(model: nn.Module, inputs: Inputs, wanted: int) -> nn.Module:
    """Return the peer's model with the least number of operations that is not below `wanted`."""
    low, high = 0.0, RATIO
    for _ in range(STEPS):
        middle = (low + high) / 2
        if operations(pruned_by_peer(model, inputs, middle), inputs) >= wanted:
            low = middle
        else:
            high = middle
    return pruned_by_peer(model, inputs, low)


def figures_of(name: str, runs: int) -> list[Figure]:
    model, inputs = SUBJECTS[name]()
    randomise(model, SEED)
    full = operations(model, inputs)
    figures: list[Figure] = []
    for kind, change in (("whole", False), ("shrunk", True)):
        ours, report = prune(copy.deepcopy(model), inputs, RATIO, allow_norm_change=change)
        size = operations(ours, inputs)
        if change:
            theirs = pruned_by_peer(model, inputs, RATIO)
        else:
            theirs = peer_of_size(model, inputs, size)
            figures.append(at_most(f"{name} {kind}: error", report.error, EXACT))
        peers = operations(theirs, inputs)
        what = f"{name} {kind}: operations"
        figures.append(
            at_most(what, size / full, CLOSE * peers / full, note="target is the peer's")
        )
        figures += speed_figures(f"{name} {kind}", (model, ours, theirs), inputs, runs)
    return figures


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of the models")
    parser.add_argument("--runs", type=int, default=9, help="number of timed passes")
    chosen = parser.parse_args(words)
    print_header(str(__doc__), seed=SEED, packages=["torch"])
    missing = [one for one in missing_libraries() if one == "torchvision"]
    if missing or importlib.util.find_spec(PEER) is None:
        print(f"   skipped: {REMEDY} torch-pruning==1.6.1")
        return
    torch.set_num_threads(1)
    figures: list[Figure] = []
    for name in SUBJECTS:
        if chosen.only in name:
            figures += figures_of(name, chosen.runs)
    print_figures(figures)


if __name__ == "__main__":
    main()
