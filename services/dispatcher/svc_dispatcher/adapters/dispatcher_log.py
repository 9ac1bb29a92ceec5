"""`dispatcher.log` of one experiment: the host's output, and a few lines of the dispatcher."""

import os
from contextlib import suppress
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Final

from svc_common.experiment_files import ExperimentRoots

LOG_NAME: Final = "dispatcher.log"
_TAIL_BYTES: Final = 2_000


class DispatcherLog:
    """File `dispatcher.log` of an experiment, which its algorithm host also appends to.

    The host writes through a descriptor of its own, so every use here opens the file anew.

    Args:
        directory: the `log` folder of the experiment, which exists.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / LOG_NAME
        with self.open() as file:
            self._start_bytes = os.fstat(file.fileno()).st_size

    def open(self) -> FileIO:
        """Open `dispatcher.log` for appending, without following a link in its place.

        Raises:
            OSError: it cannot be opened.
        """
        with ExperimentRoots().open(self.path.parent) as folder:
            return folder.append_file(LOG_NAME)

    def note(self, level: str, message: str) -> None:
        """Append a time-stamped line to `dispatcher.log`; a write error is ignored."""
        now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
        line = f"[{now}] {level} (svc_dispatcher/MainThread) {message}\n"
        with suppress(OSError), self.open() as file:
            file.write(line.encode("utf-8", "replace"))

    def last_line(self) -> str:
        """Return the last line that this run wrote to `dispatcher.log`; empty: none or no file."""
        try:
            with (
                ExperimentRoots().open(self.path.parent) as folder,
                folder.read_file(LOG_NAME) as file,
            ):
                end_bytes = file.seek(0, 2)
                file.seek(max(self._start_bytes, end_bytes - _TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            return ""  # the file was removed
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
