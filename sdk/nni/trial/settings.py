"""Environment variables of a trial process; only this module of `nni.trial` reads them."""

import os

PLATFORM = "NNI_PLATFORM"
SOCKET = "NNI_TRIAL_SOCKET"
TOKEN = "NNI_TRIAL_TOKEN"  # noqa: S105 - the name of a variable
EXPERIMENT_ID = "NNI_EXP_ID"
TRIAL_ID = "NNI_TRIAL_JOB_ID"
SEQUENCE_ID = "NNI_TRIAL_SEQ_ID"
OUTPUT_DIRECTORY = "NNI_OUTPUT_DIR"
MULTI_PHASE = "MULTI_PHASE"
STANDALONE = "STANDALONE"
"""Experiment and trial id of a process that no experiment started."""


def in_experiment() -> bool:
    """Return True if an experiment started this process."""
    return PLATFORM in os.environ


def is_multi_phase() -> bool:
    """Return True if one trial may request several sets of parameters."""
    return os.environ.get(MULTI_PHASE, "").lower() == "true"


def experiment_id() -> str:
    """Return the experiment's id, or `STANDALONE`."""
    return required(EXPERIMENT_ID) if in_experiment() else STANDALONE


def is_first_rank() -> bool:
    """Return True unless a launcher of distributed training has set a rank other than 0."""
    ranks = ("RANK", "LOCAL_RANK")
    return all(os.environ.get(name, "0") == "0" for name in ranks)


def trial_id() -> str:
    """Return the trial's id, or `STANDALONE`."""
    return required(TRIAL_ID) if in_experiment() else STANDALONE


def sequence_id() -> int:
    """Return the trial's place in the order of submission, from 0; 0 outside an experiment."""
    return int(required(SEQUENCE_ID)) if in_experiment() else 0


def environment() -> dict[str, str]:
    """Return a copy of the environment of this process."""
    return dict(os.environ)


def replace_environment(variables: dict[str, str]) -> None:
    """Set and delete variables until this process's environment equals the given one.

    Args:
        variables: all that it is to have.
    """
    for name in [name for name in os.environ if name not in variables]:
        del os.environ[name]
    for name, value in variables.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def required(name: str) -> str:
    """Return a variable that trials of an experiment have; raise RuntimeError if it is missing.

    Raises:
        RuntimeError: it is missing, as happens when a wrapper drops the environment.
    """
    value = os.environ.get(name)
    if value is None:
        raise RuntimeError(
            f"environment variable {name} must be set where {PLATFORM} is, and is not; pass the "
            f"whole environment on to this process (sudo needs -E), or unset {PLATFORM} to run "
            "outside the experiment"
        )
    return value
