"""`dispatcher.log` of one experiment: the host's output, and a few lines of the dispatcher."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

LOG_NAME: Final = "dispatcher.log"
_TAIL_BYTES: Final = 2_000


class DispatcherLog:
    """Log file during one run of a host.

    The host writes through a descriptor of its own, so every use here opens the file anew.

    Args:
        directory: the `log` folder of the experiment, which exists.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / LOG_NAME
        self.path.touch()
        self._start_bytes = self.path.stat().st_size

    def note(self, level: str, message: str) -> None:
        """Append a line in the format of the host's own lines; a full disk loses the line."""
        now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
        with suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(f"[{now}] {level} (svc_dispatcher/MainThread) {message}\n")

    def last_line(self) -> str:
        """Return the last line written in this run, such as an import error; empty if none was."""
        try:
            with self.path.open("rb") as file:
                end_bytes = file.seek(0, 2)
                file.seek(max(self._start_bytes, end_bytes - _TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            return ""  # the file was removed
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
