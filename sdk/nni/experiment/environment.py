"""The one module of the client side that reads the process environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

_HOME_VARIABLE: Final = "NNI_HOME"
_DEFAULT_HOME: Final = "~/.local/state/nni"
_OF_ONE_TRIAL: Final = frozenset(
    {
        "NNI_PLATFORM",
        "NNI_EXP_ID",
        "NNI_SYS_DIR",
        "NNI_TRIAL_JOB_ID",
        "NNI_OUTPUT_DIR",
        "NNI_TRIAL_SEQ_ID",
        "NNI_CODE_DIR",
        "NNI_TRIAL_SOCKET",
        "NNI_TRIAL_TOKEN",
        "MULTI_PHASE",
    }
)
"""What a trial's own environment has; an experiment started inside a trial must not inherit it."""


_GRPC_VERBOSITY: Final = "GRPC_VERBOSITY"


def quiet_grpc() -> None:
    """Keep gRPC's own remarks, such as on a server that goes away, off the user's terminal.

    Works only before gRPC is imported; what the user has set stays.
    """
    os.environ.setdefault(_GRPC_VERBOSITY, "ERROR")


def nni_home() -> Path:
    """Return the folder of this installation's state; it need not exist."""
    return Path(os.environ.get(_HOME_VARIABLE) or _DEFAULT_HOME).expanduser()


def experiment_environment() -> dict[str, str]:
    """Return the environment in which an experiment's algorithm and trials run.

    It is that of this process, except that the folder of this interpreter comes first on the
    PATH unless a virtual environment is active: `python3` in a trial command then finds the
    packages that were installed beside NNI. Variables that are no UTF-8 are left out.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in _OF_ONE_TRIAL and _is_utf8(name) and _is_utf8(value)
    }
    if "VIRTUAL_ENV" not in environment and "CONDA_PREFIX" not in environment:
        folder = str(Path(sys.executable).parent)
        rest = environment.get("PATH", os.defpath)
        if rest.split(os.pathsep)[0] != folder:
            environment["PATH"] = folder + os.pathsep + rest
    return environment


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def supervisor_environment(ready_fd: int) -> dict[str, str]:
    """Return the environment of the local supervisor; it says on ``ready_fd`` that it is up."""
    return {**os.environ, _HOME_VARIABLE: str(nni_home()), "NNI_READY_FD": str(ready_fd)}
