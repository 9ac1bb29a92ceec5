"""Log file of a process with user code, in the folder of its experiment."""

import os
from contextlib import suppress
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Final

from svc_common.experiment_files import ExperimentRoots

_TAIL_BYTES: Final = 2_000


class ProcessLog:
    """File in an experiment's `log` folder to which a process and its service append.

    The process writes through a descriptor of its own, so every use here opens the file anew.

    Args:
        directory: the `log` folder of the experiment, which exists.
        name: of the file.
        writer: name of the service in its lines.
    """

    def __init__(self, directory: Path, name: str, writer: str) -> None:
        self.path = directory / name
        self._writer = writer
        with self.open() as file:
            self._start_bytes = os.fstat(file.fileno()).st_size

    def open(self) -> FileIO:
        """Open the file for appending, without following a link in its place.

        Raises:
            OSError: it cannot be opened.
        """
        with ExperimentRoots().open(self.path.parent) as folder:
            return folder.append_file(self.path.name)

    def note(self, level: str, message: str) -> None:
        """Append a time-stamped line; a write error is ignored."""
        now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
        line = f"[{now}] {level} ({self._writer}/MainThread) {message}\n"
        with suppress(OSError), self.open() as file:
            file.write(line.encode("utf-8", "replace"))

    def last_line(self) -> str:
        """Return the last line, not blank, that this run wrote; empty: none, or no file."""
        try:
            with (
                ExperimentRoots().open(self.path.parent) as folder,
                folder.read_file(self.path.name) as file,
            ):
                end_bytes = file.seek(0, 2)
                file.seek(max(self._start_bytes, end_bytes - _TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            return ""  # the file was removed
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
