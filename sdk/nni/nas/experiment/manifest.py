"""File that lists the experiments without a manager of one working directory."""

from __future__ import annotations

import fcntl
import json
import re
import secrets
import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from nni.durable_files import write_whole

_NAME: Final = ".experiment"
_NONE: Final = "N/A"
"""Value of fields that such an experiment does not have."""
TAG: Final = "retiarii"
"""Tag of architecture searches, as in NNI 2.x."""
_ID: Final = re.compile(r"[A-Za-z0-9_\-]{1,32}")
_ID_LENGTH: Final = 8
"""Of a generated id."""


def checked_id(experiment_id: str | None) -> str:
    """Return the given id, or a random one for None; raise ValueError if it is invalid.

    Args:
        experiment_id: id that a user has chosen; None for none.

    Raises:
        ValueError: it has other characters, or too many.
    """
    if experiment_id is None:
        letters = string.ascii_letters + string.digits
        return "".join(secrets.choice(letters) for _ in range(_ID_LENGTH))
    if not _ID.fullmatch(experiment_id):
        raise ValueError(f"id must be 1 to 32 letters, digits, '-' and '_'; got {experiment_id!r}")
    return experiment_id


class ExperimentManifest:
    """Table of experiments in a working directory, `<directory>/.experiment`.

    Processes may use it at the same time.

    Args:
        directory: the working directory; created at the first entry.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / _NAME

    def entries(self) -> dict[str, dict[str, Any]]:
        """Return the entries by id; empty without a file."""
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
            return {}
        entries: dict[str, dict[str, Any]] = json.loads(text)
        return entries

    def add_running(self, experiment_id: str, name: str | None, start_ms: int) -> None:
        """Add an experiment that has started, or replace its entry.

        Args:
            experiment_id: the experiment.
            name: of the experiment; None for none.
            start_ms: time in ms since 1970.
        """
        entry = {
            "id": experiment_id,
            "experimentName": name or _NONE,
            "port": _NONE,
            "platform": _NONE,
            "status": "RUNNING",
            "startTime": start_ms,
            "endTime": _NONE,
            "tag": [TAG],
            "logDir": str(self._directory),
        }
        with self._locked():
            self._write({**self.entries(), experiment_id: entry})

    def set_stopped(self, experiment_id: str, end_ms: int) -> None:
        """Mark an experiment as stopped; an unknown one is ignored.

        Args:
            experiment_id: the experiment.
            end_ms: time in ms since 1970.
        """
        with self._locked():
            entries = self.entries()
            if experiment_id in entries:
                entries[experiment_id].update(status="STOPPED", endTime=end_ms)
                self._write(entries)

    def _write(self, entries: dict[str, dict[str, Any]]) -> None:
        write_whole(self._path, json.dumps(entries, indent=2))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._directory.mkdir(parents=True, exist_ok=True)
        with (self._directory / f"{_NAME}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
