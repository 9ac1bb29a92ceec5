"""States of all sources of random numbers of a process, in a form for checkpoints."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch

_PYTHON: Final = "python"
_NUMPY: Final = "numpy"
_TORCH: Final = "torch"
_CUDA: Final = "cuda"


def random_states() -> dict[str, Any]:
    """Return the states of `random`, `numpy.random`, torch and its CUDA devices.

    Returns:
        Numbers, texts, lists and tensors, which `torch.load` reads with `weights_only=True`.

    Examples:
        >>> states = random_states()
        >>> first = torch.rand(1)
        >>> restore_random_states(states)
        >>> bool(torch.rand(1) == first)
        True
    """
    version, numbers, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002 - what users' code draws from
    states: dict[str, Any] = {
        _PYTHON: [version, list(numbers), gauss],
        _NUMPY: [name, np.asarray(keys).tolist(), position, has_gauss, cached],
        _TORCH: torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        states[_CUDA] = torch.cuda.get_rng_state_all()
    return states


def restore_random_states(states: Mapping[str, Any]) -> None:
    """Set the states of `random`, `numpy.random`, torch, and CUDA if devices are as many.

    Args:
        states: what `random_states` returned, maybe on a machine with other devices.
    """
    version, numbers, gauss = states[_PYTHON]
    random.setstate((version, tuple(numbers), gauss))
    name, keys, position, has_gauss, cached = states[_NUMPY]
    np.random.set_state((name, np.array(keys, "uint32"), position, has_gauss, cached))  # noqa: NPY002 - as above
    torch.set_rng_state(states[_TORCH].cpu())
    devices = states.get(_CUDA, [])
    if torch.cuda.is_available() and len(devices) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([one.cpu() for one in devices])
