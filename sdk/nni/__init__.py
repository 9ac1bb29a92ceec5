"""Tune hyperparameters, search architectures, compress models: the names a trial needs.

Importing this package loads nothing else. Each name below is imported from its home at first use,
because every trial pays for what stands here: the budget is 10 ms.
"""

from nni.version import __version__

TYPE_CHECKING = False  # `typing` alone would cost as much as the rest of a small trial
if TYPE_CHECKING:
    from nni import utils
    from nni.common.framework import set_default_framework
    from nni.common.serializer import dump, load, trace
    from nni.errors import NoMoreTrialError
    from nni.hpo.registry.validation import ClassArgsValidator
    from nni.mutable.shortcuts import (
        choice,
        loguniform,
        normal,
        qloguniform,
        qnormal,
        quniform,
        uniform,
    )
    from nni.trial.api import (
        get_current_parameter,
        get_experiment_id,
        get_next_parameter,
        get_sequence_id,
        get_trial_id,
        report_final_result,
        report_intermediate_result,
    )
    from nni.trial.checkpoints import checkpoint_directory, save_checkpoint

__all__ = [
    "ClassArgsValidator",
    "NoMoreTrialError",
    "__version__",
    "checkpoint_directory",
    "choice",
    "dump",
    "get_current_parameter",
    "get_experiment_id",
    "get_next_parameter",
    "get_sequence_id",
    "get_trial_id",
    "load",
    "loguniform",
    "normal",
    "qloguniform",
    "qnormal",
    "quniform",
    "report_final_result",
    "report_intermediate_result",
    "save_checkpoint",
    "set_default_framework",
    "trace",
    "uniform",
    "utils",
]

_HOMES = {
    "ClassArgsValidator": "nni.hpo.registry.validation",
    "NoMoreTrialError": "nni.errors",
    "checkpoint_directory": "nni.trial.checkpoints",
    "choice": "nni.mutable.shortcuts",
    "dump": "nni.common.serializer",
    "get_current_parameter": "nni.trial.api",
    "get_experiment_id": "nni.trial.api",
    "get_next_parameter": "nni.trial.api",
    "get_sequence_id": "nni.trial.api",
    "get_trial_id": "nni.trial.api",
    "load": "nni.common.serializer",
    "loguniform": "nni.mutable.shortcuts",
    "normal": "nni.mutable.shortcuts",
    "qloguniform": "nni.mutable.shortcuts",
    "qnormal": "nni.mutable.shortcuts",
    "quniform": "nni.mutable.shortcuts",
    "report_final_result": "nni.trial.api",
    "report_intermediate_result": "nni.trial.api",
    "save_checkpoint": "nni.trial.checkpoints",
    "set_default_framework": "nni.common.framework",
    "trace": "nni.common.serializer",
    "uniform": "nni.mutable.shortcuts",
}
_SUBMODULES = {"utils"}
_REMOVED = {"get_parameters": "use nni.get_next_parameter"}
_ANNOTATIONS = "function_choice lognormal qlognormal randint variable"


def __getattr__(name: str) -> object:
    """Import a public name on its first use; AttributeError, perhaps with a remedy, for others."""
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"nni.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'nni' has no attribute {name!r}{_remedy(name)}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def _remedy(name: str) -> str:
    """Return the remedy for an error about a removed or annotation-only name; else ''."""
    if name in _REMOVED:
        return f"; {_REMOVED[name]}"
    if name in _ANNOTATIONS.split():
        text = "'''@nni.variable(nni.choice(1, 2), name=x)'''"
        return f"; it is a word of annotations, which are texts: {text}"
    return ""


def __dir__() -> list[str]:
    """Return the public names, loaded or not, and what else is loaded, sorted."""
    return sorted({*globals(), *__all__})
