"""Settings of the supervisor, read once from the environment."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from svc_common import environment

NNI_HTTP_PORT: Final = "NNI_HTTP_PORT"
"""Port of page and REST; unset or 0 = a free one."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the supervisor needs to know."""

    home: Path
    """Folder of the installation's state; made if needed, readable by this user only."""
    http_port: int = 0
    """Port of page and REST on loopback; 0 = a free one."""
    start_timeout_s: float = 60.0
    """How long all services together may take until they are ready."""
    stop_grace_s: float = 10.0
    """How long children may take to end before they are killed."""

    @property
    def logs(self) -> Path:
        """Folder of the logs of all children."""
        return self.home / "log"


def read_settings() -> Settings:
    """Read the settings of this process.

    Raises:
        InvalidArgumentError: a variable has a value that it must not have.
    """
    return Settings(
        home=environment.home().resolve(), http_port=environment.integer(NNI_HTTP_PORT, 0)
    )
