"""States of the sources of random numbers."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import torch

from nni.nas.strategy.oneshot.random_states import random_states, restore_random_states


def draws() -> list[float]:
    return [
        random.random(),
        random.gauss(0.0, 1.0),
        float(np.random.rand()),  # noqa: NPY002 - what users' code draws from
        float(torch.rand(1)),
    ]


def test_draws_are_the_same_after_a_restoration_from_a_file(tmp_path: Path) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.save(random_states(), tmp_path / "states")
        first = draws()
        draws()

        restore_random_states(torch.load(tmp_path / "states", weights_only=True))

        assert draws() == first
