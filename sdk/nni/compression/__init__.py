"""Model compression: pruning, and models that are smaller for it.

Names are imported on first use, so that `import nni.compression` does not load torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.compression.evaluators.torch_evaluator import TorchEvaluator
    from nni.compression.speedup.pruning import prune

__all__ = ["TorchEvaluator", "prune"]

_HOMES = {
    "TorchEvaluator": "nni.compression.evaluators.torch_evaluator",
    "prune": "nni.compression.speedup.pruning",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home the first time it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.compression' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
