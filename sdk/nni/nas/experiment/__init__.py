"""Architecture searches as experiments: configuration, run, checkpoints and results.

Names are imported on first use.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.nas.experiment.config import NasExperimentConfig
    from nni.nas.experiment.experiment import NasExperiment

__all__ = ["NasExperiment", "NasExperimentConfig"]

_HOMES = {
    "NasExperiment": "nni.nas.experiment.experiment",
    "NasExperimentConfig": "nni.nas.experiment.config",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home the first time it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.nas.experiment' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
