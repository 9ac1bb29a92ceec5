"""Small compression job: code of its user, its description, and runs that are killed.

`python -m tests.support.compression_job FOLDER CODE KILLS SEED` runs the job of `description` in
children; each but the last is killed after a random number of training steps.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path
from typing import Any, Final

MODULE: Final = "small_network"
PROGRESS: Final = "NNI_TEST_PROGRESS"
"""Variable with the descriptor that gets one byte for each training step."""
STEPS: Final = 6
"""Training steps of each iteration."""
ITERATIONS: Final = 4
_CODE: Final = f'''
import os
import random

import numpy
import torch
from torch import nn

from nni.compression import TorchEvaluator


def make(width=8):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 3))


def training_step(batch, model):
    inputs, targets = batch
    return nn.functional.mse_loss(model(inputs), targets)


def train(model, optimizer, step, schedulers, max_steps, max_epochs):
    for _ in range(max_steps or 1):
        inputs = torch.randn(8, 4) + random.random() + numpy.random.rand()
        optimizer.zero_grad()
        step((inputs, inputs[:, :3]), model).backward()
        optimizer.step()
        if "{PROGRESS}" in os.environ:
            os.write(int(os.environ["{PROGRESS}"]), b".")


def evaluate(model):
    with torch.no_grad():
        return -float((model(torch.ones(1, 4)) - 1).square().mean())


def make_evaluator(model, rate=0.1):
    return TorchEvaluator(
        train,
        torch.optim.SGD(model.parameters(), lr=rate),
        training_step,
        dummy_input=torch.zeros(2, 4),
        evaluating_func=evaluate,
    )


def make_evaluator_without_input(model):
    return TorchEvaluator(train, torch.optim.SGD(model.parameters(), 0.1), training_step)


def make_number(model=None):
    return 3
'''


def write_code(folder: Path) -> Path:
    """Write the module of the job's user to a folder and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{MODULE}.py").write_text(_CODE)
    return folder


def description(**changes: object) -> dict[str, Any]:
    """Return the description of the job, with fields replaced."""
    return {
        "model": {"factory": f"{MODULE}:make"},
        "evaluator": {"factory": f"{MODULE}:make_evaluator"},
        "config_list": [{"op_names": ["0"], "sparse_ratio": 0.5}],
        "algorithm": {"name": "TaylorPruner", "arguments": {"training_steps": 3}},
        "schedule": {"name": "agp", "iterations": ITERATIONS},
        "fine_tuning": {"max_steps": STEPS},
        "speedup": True,
        **changes,
    }


def job_of(iterations: int = 2, *, speedup: bool = True) -> dict[str, Any]:
    """Return the description of the job with this number of pruning steps."""
    return description(schedule={"iterations": iterations}, speedup=speedup)


def run_with_kills(folder: Path, code: Path, kills: int, generator: random.Random) -> None:
    """Run the job in children; each but the last is killed after some training steps."""
    import torch

    from nni.compression.job import run_job

    # The first optimizer of a process imports for seconds: once here instead of in each child.
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    for run in range(kills + 1):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.environ[PROGRESS] = str(writer)
            run_job(description(), folder, code)
            os._exit(0)
        os.close(writer)
        # Each of these numbers is reached: every run has an iteration of its own to train.
        allowed = sys.maxsize if run == kills else generator.randint(1, 2 * STEPS)
        while allowed and os.read(reader, 1):
            allowed -= 1
        if run < kills:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)


if __name__ == "__main__":
    run_with_kills(
        Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), random.Random(int(sys.argv[4]))
    )
