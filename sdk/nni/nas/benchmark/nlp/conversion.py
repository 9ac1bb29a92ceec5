"""Converter of the original files of NAS-Bench-NLP: one JSON log for each training.

`python -m nni.nas.benchmark.nlp.conversion FOLDER`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nni.nas.benchmark.conversion_command import run_conversion
from nni.nas.benchmark.nlp.records import (
    NLP_SCHEMA,
    NlpIntermediateStats,
    NlpTrialConfig,
    NlpTrialStats,
)
from nni.nas.benchmark.writer import BenchmarkWriter


def flat_recipe(recipe: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return a recurrent cell's recipe with flat keys: `<node>_op` and `<node>_input_<index>`.

    Args:
        recipe: node to its `op` and its list `input`.

    Examples:
        >>> flat_recipe({"node_0": {"op": "linear", "input": ["x", "h_prev_0"]}})
        {'node_0_op': 'linear', 'node_0_input_0': 'x', 'node_0_input_1': 'h_prev_0'}
    """
    flat = {}
    for node, content in recipe.items():
        flat[f"{node}_op"] = content["op"]
        for at, source in enumerate(content["input"]):
            flat[f"{node}_input_{at}"] = source
    return flat


def convert_nlp(source: Path, writer: BenchmarkWriter) -> None:
    """Add a trial per JSON log below a folder to a database, if it has epochs; raise without logs.

    A training that ended before its first epoch has no results and is left out.

    Args:
        source: folder of the logs; its subfolders are searched too.
        writer: writer of an empty database.

    Raises:
        ValueError: the folder holds no log.
    """
    files = sorted(source.rglob("*.json"))
    if not files:
        raise ValueError(f"{source} must be a folder with the .json logs of the benchmark")
    for path in files:
        log = json.loads(path.read_text("utf-8"))
        rows = list(
            zip(
                *(log[key] for key in ("train_losses", "val_losses", "test_losses", "wall_times")),
                strict=True,
            )
        )
        if rows:
            # The original spells it so.
            arch = flat_recipe(json.loads(log["recepie"]))
            stats = NlpTrialStats(NlpTrialConfig(arch, Path(log["data"]).name), *rows[-1])
            writer.add(
                stats,
                (
                    NlpIntermediateStats(stats, epoch, *row)
                    for epoch, row in enumerate(rows, start=1)
                ),
            )


if __name__ == "__main__":
    sys.exit(run_conversion(convert_nlp, NLP_SCHEMA, "the folder of the .json logs"))
