"""With which command and environment the host of an experiment runs."""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from svc_common import environment as names
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
"""What user code must not see."""


def host_command(interpreter: str, in_fd: int, out_fd: int) -> list[str]:
    """Give the command line of a host.

    Args:
        interpreter: the client's; empty for this process's own.
        in_fd: its end of the command pipe.
        out_fd: its end of the answer pipe.
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
    """Where the experiment's user works: what hosts and trials run with."""

    environment: dict[str, str] = field(repr=False)
    interpreter: str
    """Empty for this process's own."""


def client_side(setup: ExperimentSetup, inherited: dict[str, str]) -> ClientSide:
    """Read what the client left in the experiment's folder; the last resume counts.

    Args:
        setup: of the experiment.
        inherited: the environment where the client left none.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged.
    """
    path = Path(setup.directory) / ENVIRONMENT_NAME
    if not path.exists():
        return ClientSide(inherited, setup.interpreter)
    kept = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(kept, dict):
        raise ValueError(f"{path} must hold a JSON object")  # noqa: TRY004 - a damaged file
    return ClientSide(
        kept.get("environment") or inherited, kept.get("interpreter") or setup.interpreter
    )


def host_environment(
    setup: ExperimentSetup, client: ClientSide, log_directory: Path
) -> dict[str, str]:
    """Give the environment of a host: the client's, without secrets of ours, repeatable."""
    made = dict(client.environment)
    for name in _PRIVATE:
        made.pop(name, None)
    made["NNI_LOG_DIRECTORY"] = str(log_directory)
    made["PYTHONHASHSEED"] = "0"
    # Suggestions must not depend on how a sum was split over threads.
    made |= dict.fromkeys(_THREAD_LIMITS, "1")
    made["PYTHONUNBUFFERED"] = "1"
    if setup.gpu_indices:
        made["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in setup.gpu_indices)
    return made
