"""Training of the cells that the surrogate is fitted to, in parts that can be interrupted.

`python -m nni_benchmark.nas.trained_cells FILE --seconds 50` trains cells until the time is over or
all have been trained, and writes the results to the file; call it again to go on.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from nni_benchmark.nas.cells import CELLS, cell_of

TRAINED: Final = 240
"""Cells that are trained once."""
REPEATED: Final = 60
"""Cells that are trained a second time with another seed, for the noise of a training."""
EPOCHS: Final = 8
CHANNELS: Final = 6
_CHOICE_SEED: Final = 201


@dataclass(frozen=True, slots=True)
class TrainedCell:
    """Accuracies and duration of one training of a cell.

    Examples:
        >>> TrainedCell(4711, 0, 90.0, 89.0, 99.0, 0.6).valid_acc
        90.0
    """

    number: int
    """Number of the cell."""
    seed: int
    """Seed of the training; 0 for the first one of a cell, 1 for the second."""
    valid_acc: float
    """Final accuracy on validation images, 0 to 100."""
    test_acc: float
    """Final accuracy on test images, 0 to 100."""
    train_acc: float
    """Final accuracy on training images, 0 to 100."""
    seconds: float
    """Duration of the training."""


def wanted_trainings() -> list[tuple[int, int]]:
    """Return number of the cell and seed of each training, in order.

    Examples:
        >>> len(wanted_trainings())
        300
    """
    numbers = random.Random(_CHOICE_SEED).sample(range(CELLS), TRAINED)
    return [(number, 0) for number in numbers] + [(number, 1) for number in numbers[:REPEATED]]


def read_trained(path: Path) -> list[TrainedCell]:
    """Return the trainings in a file; none if there is no file.

    Args:
        path: file that `main` writes.

    Examples:
        >>> read_trained(Path("missing.json"))
        []
    """
    if not path.exists():
        return []
    return [TrainedCell(**one) for one in json.loads(path.read_text("utf-8"))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Train the missing cells, rewriting the file after each; return 1 if the time is up before.

    Args:
        arguments: words after the program's name; None for those of this process.

    Returns:
        Exit status: 0 if all are trained, 1 if some are left.
    """
    import torch

    from nni_benchmark.nas.training import train_cell

    parser = argparse.ArgumentParser(description="Train cells for the surrogate.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--limit", type=int, default=TRAINED + REPEATED, help="number of trainings")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    end = time.monotonic() + options.seconds
    trained = read_trained(options.file)
    missing = wanted_trainings()[len(trained) : options.limit]
    for number, seed in missing:
        if time.monotonic() > end:
            return 1
        last = train_cell(cell_of(number), seed=seed, epochs=EPOCHS, channels=CHANNELS)[-1]
        trained.append(
            TrainedCell(
                number,
                seed,
                valid_acc=round(last.valid_acc, 3),
                test_acc=round(last.test_acc, 3),
                train_acc=round(last.train_acc, 3),
                seconds=round(last.seconds, 3),
            )
        )
        lines = ",\n".join(json.dumps(asdict(one)) for one in trained)
        options.file.write_text(f"[\n{lines}\n]\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
