"""In-process execution of converted code, with parameters and without an experiment."""

from __future__ import annotations

from typing import Any

from nni.annotation import runtime
from nni.trial.api import use_channel
from tests.support.trial_channels import InMemoryTrialChannel


def run_converted(
    code: bytes, trial: InMemoryTrialChannel | object, **names: Any
) -> dict[str, Any]:
    """Run a converted module as a trial would, and return its names.

    Args:
        code: the module.
        trial: the channel of the trial, or just its configuration.
        **names: what the module finds defined.
    """
    channel = trial if isinstance(trial, InMemoryTrialChannel) else InMemoryTrialChannel(trial)
    runtime.forget()
    use_channel(channel)
    try:
        namespace: dict[str, Any] = {"__name__": "converted", **names}
        exec(compile(code, "converted.py", "exec"), namespace)
        return namespace
    finally:
        use_channel(None)
        runtime.forget()
