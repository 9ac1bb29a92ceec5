"""Converter of the original files of NDS: one JSON list of jobs for each sweep.

`python -m nni.nas.benchmark.nds.conversion FOLDER`

The name of a file says who proposed the space and how it was sampled, such as
`DARTS_fix-w-d.json`, `ResNeXt-A_in.json` (ImageNet) or `Vanilla_lr-wd.json`. Files with two lists,
`top` and `mid`, hold both.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from nni.nas.benchmark.conversion_command import run_conversion
from nni.nas.benchmark.nds.records import (
    NDS_SCHEMA,
    NdsIntermediateStats,
    NdsTrialConfig,
    NdsTrialStats,
)
from nni.nas.benchmark.writer import BenchmarkWriter

_GENERATORS: Final = {"fix-w-d": "fix_w_d", "lr-wd": "tune_lr_wd"}
_KINDS: Final = ("normal", "reduce")
_FAMILIES: Final = {
    "bottleneck": "residual_bottleneck",
    "basic": "residual_basic",
    "vanilla": "vanilla",
}
"""Part of the name of a block to the family."""


def convert_nds(source: Path, writer: BenchmarkWriter) -> None:
    """Add the trials of all sweeps (JSON files) in a folder to a database; raise if it has none.

    Args:
        source: folder of `.json` files.
        writer: writer of an empty database.

    Raises:
        ValueError: the folder holds no sweep, or a job has an unknown block.
    """
    files = sorted(source.glob("*.json"))
    if not files:
        raise ValueError(f"{source} must be a folder with the .json files of NDS, it has none")
    for path in files:
        proposer, *rest = path.stem.lower().split("_")
        generator = next((_GENERATORS[one] for one in rest if one in _GENERATORS), "random")
        dataset = "imagenet" if "in" in rest else "cifar10"
        content = json.loads(path.read_text("utf-8"))
        jobs = content["top"] + content["mid"] if isinstance(content, dict) else content
        for job in jobs:
            _add(writer, job, proposer, generator, dataset)


def _add(
    writer: BenchmarkWriter, job: Mapping[str, Any], proposer: str, generator: str, dataset: str
) -> None:
    family, model_spec, cell_spec = _network(job["net"])
    optimizer = job["optim"]
    config = NdsTrialConfig(
        family,
        model_spec,
        cell_spec,
        proposer,
        float(optimizer["base_lr"]),
        float(optimizer["wd"]),
        int(optimizer["max_ep"]),
        dataset,
        generator,
    )
    train = [100 - error for error in job["train_ep_top1"]]
    test = [100 - error for error in job["test_ep_top1"]]
    losses = job["train_ep_loss"]
    stats = NdsTrialStats(
        config,
        int(job["rng_seed"]),
        train[-1],
        losses[-1],
        test[-1],
        max(train),
        min((loss for loss in losses if not math.isnan(loss)), default=None),
        max(test),
        job["params"] / 1e6,
        job["flops"] / 1e6,
        float(job["iter_time"]),
    )
    rows = zip(losses, train, test, strict=True)
    writer.add(
        stats,
        (NdsIntermediateStats(stats, epoch, *row) for epoch, row in enumerate(rows, start=1)),
    )


def _network(net: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return family, specification of the network, and of its cells (empty for other families)."""
    if "genotype" in net:
        genotype = net["genotype"]
        model_spec = {
            f"num_nodes_{kind}": len(genotype[kind]) // 2 for kind in ("normal", "reduce")
        }
        model_spec |= {key: net[key] for key in ("depth", "width", "aux", "drop_prob")}
        return "nas_cell", model_spec, dict(_cells(genotype))
    block = str(net.get("block_type", ""))
    family = next((name for part, name in _FAMILIES.items() if part in block), None)
    if family is None:
        raise ValueError(f"block_type must name one of {', '.join(_FAMILIES)}, got {block!r}")
    # Fields that a family does not use are empty.
    return family, {key: net[key] for key in net if key != "block_type" and net[key]}, {}


def _cells(genotype: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for kind in _KINDS:
        pairs: Sequence[Sequence[Any]] = genotype[kind]
        for at, (operation, source) in enumerate(pairs):
            node, side = at // 2, "xy"[at % 2]
            yield f"{kind}_{node}_op_{side}", operation
            yield f"{kind}_{node}_input_{side}", source
        yield f"{kind}_concat", list(genotype[f"{kind}_concat"])


if __name__ == "__main__":
    sys.exit(run_conversion(convert_nds, NDS_SCHEMA, "the folder of the .json files of NDS"))
