"""Settings of the supervisor from the environment."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from nni_wire.folders import BUS_FOLDER
from nni_wire.limits import START_LIMIT_S, START_SILENCE_LIMIT_S
from svc_common import environment
from svc_common.errors import InvalidArgumentError

NNI_HTTP_PORT: Final = "NNI_HTTP_PORT"
"""Port of page and REST; unset or 0: a free one."""
NNI_DURABILITY: Final = "NNI_DURABILITY"
"""What the bus's data survive, a `Durability`; unset: power."""


class Durability(StrEnum):
    """Failure that messages acknowledged by the bus survive: a killed process, or a power cut."""

    PROCESS = "process"
    """The kill of any process. The operating system writes to the disk when it likes, so that a cut
    of power loses the last seconds to minutes."""
    POWER = "power"
    """A cut of power, too: the bus acknowledges a message when it is on the disk."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the supervisor: folder, HTTP port, durability, time limits of its children."""

    home: Path
    """Folder of the installation's state; created if missing, readable by this user only."""
    http_port: int = 0
    """Port of page and REST on loopback; 0: a free one."""
    durability: Durability = Durability.POWER
    """What the bus's data survive."""
    start_timeout_s: float = START_SILENCE_LIMIT_S
    """Longest time of a start without progress: no service has become ready, and those that are not
    use no CPU time; in seconds."""
    start_limit_s: float = START_LIMIT_S
    """Time limit until all services are ready, in seconds."""
    hung_after_s: float = 60.0
    """Time without a sign of its event loop, or without a PONG of the bus, after which a child
    is killed and restarted, in seconds: longer than load or a large import stops it."""
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
    """Read folder, HTTP port and durability of the bus from the environment; else defaults.

    Raises:
        InvalidArgumentError: a variable has an invalid value.
    """
    return Settings(
        home=environment.home().resolve(),
        http_port=environment.integer(NNI_HTTP_PORT, 0),
        durability=_durability(environment.text(NNI_DURABILITY, "") or Durability.POWER),
    )


def _durability(name: str) -> Durability:
    try:
        return Durability(name)
    except ValueError as error:
        raise InvalidArgumentError(NNI_DURABILITY, "must be process or power", name) from error
