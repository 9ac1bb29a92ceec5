"""Command line and environment of an experiment's host."""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from svc_common import environment as names
from svc_common.experiment_files import ExperimentRoots
from svc_dispatcher.domain.values import ExperimentSetup

ENVIRONMENT_NAME: Final = "environment.json"
"""File in the experiment's folder: `{"environment": {...}, "interpreter": "..."}`, mode 0600."""
_THREAD_LIMITS: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
_PRIVATE: Final = (names.NNI_TOKEN, names.NNI_NATS_URL, names.NNI_READY_FD)
"""Variables hidden from user code."""


def host_command(interpreter: str, in_fd: int, out_fd: int) -> list[str]:
    """Return the command line `interpreter -m nni.hpo.host` with pipes and parent's pid.

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


@dataclass(frozen=True, slots=True)
class ClientSide:
    """Environment variables and interpreter of the client, under which hosts run."""

    environment: dict[str, str] = field(repr=False)
    interpreter: str
    """Empty for this process's own."""


def client_side(setup: ExperimentSetup, inherited: dict[str, str]) -> ClientSide:
    """Read the client's environment and interpreter from `environment.json`, or use defaults.

    Args:
        setup: of the experiment.
        inherited: environment to use if the file is missing.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged.
    """
    path = Path(setup.directory) / ENVIRONMENT_NAME
    kept = _kept(path)
    if kept is None:
        return ClientSide(inherited, setup.interpreter)
    if not isinstance(kept, dict):
        raise ValueError(f"{path} must hold a JSON object")  # noqa: TRY004 - a damaged file
    return ClientSide(
        kept.get("environment") or inherited, kept.get("interpreter") or setup.interpreter
    )


def _kept(path: Path) -> Any:  # noqa: ANN401 - a JSON value, which the caller checks
    """Return the JSON of an environment file, never through a link; None: there is none.

    A link in its place, which a trial may have put there, cannot be read.
    """
    try:
        folder = ExperimentRoots().open(path.parent)
    except FileNotFoundError:
        return None
    with folder:
        if folder.status(path.name) is None:
            return None
        with folder.read_file(path.name) as file:
            return json.loads(file.read().decode("utf-8"))


def host_environment(
    setup: ExperimentSetup, client: ClientSide, log_directory: Path
) -> dict[str, str]:
    """Build a host's environment: the client's, no secrets, one thread, fixed hash seed, GPUs."""
    made = dict(client.environment)
    for name in _PRIVATE:
        made.pop(name, None)
    made["NNI_LOG_DIRECTORY"] = str(log_directory)
    made["PYTHONHASHSEED"] = "0"
    # Suggestions must not depend on how a sum is split over threads.
    made |= dict.fromkeys(_THREAD_LIMITS, "1")
    made["PYTHONUNBUFFERED"] = "1"
    if setup.gpu_indices:
        made["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in setup.gpu_indices)
    return made
