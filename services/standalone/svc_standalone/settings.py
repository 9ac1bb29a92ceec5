"""Settings of the supervisor from the environment."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nni_wire.folders import BUS_FOLDER
from svc_common import environment

NNI_HTTP_PORT: Final = "NNI_HTTP_PORT"
"""Port of page and REST; unset or 0: a free one."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the supervisor: folder, HTTP port and time limits of its children."""

    home: Path
    """Folder of the installation's state; created if missing, readable by this user only."""
    http_port: int = 0
    """Port of page and REST on loopback; 0: a free one."""
    start_timeout_s: float = 60.0
    """Time limit until all services are ready, in seconds."""
    hung_after_s: float = 60.0
    """Time without a sign of its event loop after which a service is killed and restarted, in
    seconds: longer than a machine under load or a large import stops it."""
    health_every_s: float = 2.0
    """Interval of the checks of all children, in seconds."""
    stop_grace_s: float = 10.0
    """Grace period of children between TERM and KILL, in seconds."""

    @property
    def logs(self) -> Path:
        """Folder of the logs of all children."""
        return self.home / "log"

    @property
    def store(self) -> Path:
        """Folder of the bus's data."""
        return self.home / BUS_FOLDER


def read_settings() -> Settings:
    """Read the supervisor's folder and HTTP port from the environment.

    Raises:
        InvalidArgumentError: a variable has an invalid value.
    """
    return Settings(
        home=environment.home().resolve(), http_port=environment.integer(NNI_HTTP_PORT, 0)
    )
