"""Auto-compression: an experiment that searches over compression algorithms and their settings.

Names are imported on first use: the search space needs no torch, and a trial no client.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.compression.experiment.auto_compression import AutoCompressionExperiment
    from nni.compression.experiment.compression_trial import compress_and_measure
    from nni.compression.experiment.interface import AbstractAutoCompressionModule
    from nni.compression.experiment.search_space import AutoCompressionSearchSpaceGenerator

__all__ = [
    "AbstractAutoCompressionModule",
    "AutoCompressionExperiment",
    "AutoCompressionSearchSpaceGenerator",
    "compress_and_measure",
]

_HOMES = {
    "AbstractAutoCompressionModule": "nni.compression.experiment.interface",
    "AutoCompressionExperiment": "nni.compression.experiment.auto_compression",
    "AutoCompressionSearchSpaceGenerator": "nni.compression.experiment.search_space",
    "compress_and_measure": "nni.compression.experiment.compression_trial",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use; raise AttributeError if unknown."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.compression.experiment' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
