"""Compression jobs: a pruning described in JSON, done in steps that survive a crash.

Names are imported on first use, so that a description is checked without torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.compression.job.description import JobDescription
    from nni.compression.job.field_checks import JobError
    from nni.compression.job.local_run import run_job
    from nni.compression.job.step_files import StepResult

__all__ = ["JobDescription", "JobError", "StepResult", "run_job"]

_HOMES = {
    "JobDescription": "nni.compression.job.description",
    "JobError": "nni.compression.job.field_checks",
    "StepResult": "nni.compression.job.step_files",
    "run_job": "nni.compression.job.local_run",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use; raise AttributeError if unknown."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.compression.job' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
