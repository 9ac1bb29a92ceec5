"""Model compression: pruning, and models that are smaller for it.

Names are imported on first use, so that `import nni.compression` does not load torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.compression.base.evaluator import Evaluator
    from nni.compression.evaluators.deepspeed_evaluator import DeepspeedTorchEvaluator
    from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
    from nni.compression.evaluators.lightning_evaluator import LightningEvaluator
    from nni.compression.evaluators.torch_evaluator import TorchEvaluator
    from nni.compression.evaluators.transformers_evaluator import TransformersEvaluator
    from nni.compression.speedup.decoder import prune_decoder
    from nni.compression.speedup.pruning import prune

__all__ = [
    "DeepspeedTorchEvaluator",
    "Evaluator",
    "LegacyEvaluator",
    "LightningEvaluator",
    "TorchEvaluator",
    "TransformersEvaluator",
    "prune",
    "prune_decoder",
]

_HOMES = {
    "DeepspeedTorchEvaluator": "nni.compression.evaluators.deepspeed_evaluator",
    "Evaluator": "nni.compression.base.evaluator",
    "LegacyEvaluator": "nni.compression.evaluators.legacy_evaluator",
    "LightningEvaluator": "nni.compression.evaluators.lightning_evaluator",
    "TorchEvaluator": "nni.compression.evaluators.torch_evaluator",
    "TransformersEvaluator": "nni.compression.evaluators.transformers_evaluator",
    "prune": "nni.compression.speedup.pruning",
    "prune_decoder": "nni.compression.speedup.decoder",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use; raise AttributeError if unknown."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.compression' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
