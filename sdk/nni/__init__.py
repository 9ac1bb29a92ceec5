"""Tune hyperparameters, search architectures, compress models: the names a trial needs.

Importing this package loads nothing else. Each name below is imported from its home at first use,
because every trial pays for what stands here: the budget is 10 ms.
"""

from nni.version import __version__

TYPE_CHECKING = False  # `typing` alone would cost as much as the rest of a small trial
if TYPE_CHECKING:
    from nni import utils
    from nni.errors import NoMoreTrialError
    from nni.hpo.registry.validation import ClassArgsValidator
    from nni.trial.api import (
        get_current_parameter,
        get_experiment_id,
        get_next_parameter,
        get_sequence_id,
        get_trial_id,
        report_final_result,
        report_intermediate_result,
    )

__all__ = [
    "ClassArgsValidator",
    "NoMoreTrialError",
    "__version__",
    "get_current_parameter",
    "get_experiment_id",
    "get_next_parameter",
    "get_sequence_id",
    "get_trial_id",
    "report_final_result",
    "report_intermediate_result",
    "utils",
]

_HOMES = {
    "ClassArgsValidator": "nni.hpo.registry.validation",
    "NoMoreTrialError": "nni.errors",
    "get_current_parameter": "nni.trial.api",
    "get_experiment_id": "nni.trial.api",
    "get_next_parameter": "nni.trial.api",
    "get_sequence_id": "nni.trial.api",
    "get_trial_id": "nni.trial.api",
    "report_final_result": "nni.trial.api",
    "report_intermediate_result": "nni.trial.api",
}
_SUBMODULES = {"utils"}


def __getattr__(name: str) -> object:
    """Import a public name from its home the first time it is asked for."""
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"nni.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'nni' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
