"""Command line and environment of an experiment's host."""

import os
import sys
from pathlib import Path
from typing import Final

from svc_common import client_environment
from svc_common.client_environment import ClientSide
from svc_dispatcher.domain.values import ExperimentSetup

_THREAD_LIMITS: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def host_command(interpreter: str, in_fd: int, out_fd: int) -> list[str]:
    """Return an algorithm host's command line: `-m nni.hpo.host`, pipes and parent's pid.

    Args:
        interpreter: of the client; empty for this process's own.
        in_fd: read end of the command pipe.
        out_fd: write end of the answer pipe.
    """
    return [
        interpreter or sys.executable,
        "-m",
        "nni.hpo.host",
        "--in-fd",
        str(in_fd),
        "--out-fd",
        str(out_fd),
        "--parent-pid",
        str(os.getpid()),
    ]


def client_side(setup: ExperimentSetup, inherited: dict[str, str]) -> ClientSide:
    """Read the client's environment and interpreter from `environment.json`, else the arguments.

    Args:
        setup: names the folder of the file, and the interpreter to use without one there.
        inherited: environment to use if the file is missing or names none.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged.
    """
    return client_environment.client_side(setup.directory, setup.interpreter, inherited)


def host_environment(
    setup: ExperimentSetup, client: ClientSide, log_directory: Path
) -> dict[str, str]:
    """Build a host's environment: the client's, no secrets, one thread, fixed seed, chosen GPUs."""
    made = client.without_secrets()
    made["NNI_LOG_DIRECTORY"] = str(log_directory)
    made["PYTHONHASHSEED"] = "0"
    # Suggestions must not depend on how a sum is split over threads.
    made |= dict.fromkeys(_THREAD_LIMITS, "1")
    made["PYTHONUNBUFFERED"] = "1"
    if setup.gpu_indices:
        made["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in setup.gpu_indices)
    return made
