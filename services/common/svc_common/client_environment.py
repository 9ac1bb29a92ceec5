"""Environment of the client that created an experiment, for processes of its user code."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from svc_common import environment as names
from svc_common.experiment_files import ExperimentRoots

ENVIRONMENT_NAME: Final = "environment.json"
"""File in the experiment's folder: `{"environment": {...}, "interpreter": "..."}`, mode 0600."""
_PRIVATE: Final = (names.NNI_TOKEN, names.NNI_NATS_URL, names.NNI_READY_FD)
"""Variables hidden from user code."""


@dataclass(frozen=True, slots=True)
class ClientSide:
    """Environment variables and interpreter of the client, under which user code runs."""

    environment: dict[str, str] = field(repr=False)
    interpreter: str
    """Empty for this process's own."""

    def without_secrets(self) -> dict[str, str]:
        """Return a copy of the environment without the variables that are hidden from user code."""
        return {name: text for name, text in self.environment.items() if name not in _PRIVATE}


def client_side(directory: str, interpreter: str, inherited: dict[str, str]) -> ClientSide:
    """Read the client's environment and interpreter from `environment.json`, else the arguments.

    Args:
        directory: folder of the experiment.
        interpreter: to use if the file is missing or names none.
        inherited: environment to use if the file is missing or names none.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged.
    """
    path = Path(directory) / ENVIRONMENT_NAME
    kept = _kept(path)
    if kept is None:
        return ClientSide(inherited, interpreter)
    if not isinstance(kept, dict):
        raise ValueError(f"{path} must hold a JSON object")  # noqa: TRY004 - a damaged file
    return ClientSide(kept.get("environment") or inherited, kept.get("interpreter") or interpreter)


def _kept(path: Path) -> Any:  # noqa: ANN401 - a JSON value, which the caller checks
    """Return the parsed JSON of an environment file; None: it is missing; raise if it is a link.

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
