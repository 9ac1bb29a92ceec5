"""File of settings of an agent that a fleet starts: written on its machine, read by the agent.

The file is readable by its owner only and has the agent's secrets, so that none is on a command
line or in an environment. `python -m svc_trial_runner --settings FILE` reads it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

from svc_common.errors import InvalidArgumentError
from svc_common.storage.shared_storage import LocalMount, SharedStorage, StorageKind

FORMAT: Final = 1
GRACE_S: Final = 5.0
"""Time from TERM to the end of an agent, unless its platform grants more."""
LEAST_GRACE_S: Final = 2.0
"""An agent sends its last reports in the last second of its grace."""
SILENCE_LIMIT_S: Final = 120.0
"""An agent whose connection to the bus is cut ends itself after this time."""


class ConnectionKind(StrEnum):
    """Kinds of connection from an agent to bus and manager: direct, by sockets, by TLS front."""

    DIRECT = "direct"
    """`bus` and `manager` are addresses, `nats://host:port` and `host:port`, without TLS: for
    loopback only."""
    SOCKETS = "sockets"
    """`folder` has a file `current` with the name of a subfolder, in which `bus.sock` and
    `manager.sock` are sockets of the present connection; a new connection writes a new name."""
    TLS = "tls"
    """`bus` (`tls://host:port`) and `manager` (`host:port`) are addresses of the TLS front, whose
    certificate has the name `enrolment.FRONT_NAME`; `authority` is the certificate, in PEM, that
    it is signed by."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Connection of an agent to bus and manager: kind, addresses, socket folder, authority."""

    kind: ConnectionKind
    bus: str = ""
    manager: str = ""
    folder: str = ""
    authority: str = ""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Settings of an agent on a machine without an installation: identity, connection, limits."""

    name: str
    """Id of the agent on the bus."""
    pool: str
    platform: str
    """Of the pool: `remote`, `slurm`, ..."""
    home: str
    """Folder of the agent on its machine; `~` is the home of its user there."""
    connection: ConnectionSettings
    bus_user: str
    bus_password: str = field(repr=False)
    manager_token: str = field(repr=False)
    slots: int = 1
    """Trials at once."""
    max_trials: int | None = None
    """The agent ends after so many trials; None: it stays."""
    max_lifetime_s: float | None = None
    """After this time the agent takes no more trials, and ends with its last one; None: it stays.
    Of an agent whose machine is given for a limited time."""
    bus_is_here: bool = False
    """True if the bus runs on this machine, so that no other agent can have this one's tasks."""
    silence_limit_s: float = SILENCE_LIMIT_S
    grace_s: float = GRACE_S
    """Time that the platform grants from TERM to KILL: trials end in it, and their last checkpoints
    are stored."""
    setup_lines: tuple[str, ...] = ()
    """Command lines of bash, each complete: `module load cuda`, `conda activate x`. They run once,
    after the login scripts, and trials get the variables that they leave."""
    python_path: str = ""
    """Folder that is put first on the PATH of trials; empty: none."""
    version: str = "unknown"
    """NNI's version in the installation."""
    gpu_indices: tuple[int, ...] | None = None
    """GPUs of this machine that trials may use; None: the experiment's rule holds."""
    use_active_gpu: bool | None = None
    """Whether trials may use GPUs that other programs use; None: the experiment's rule holds."""
    trials_per_gpu: int | None = None
    """Trials at once on a GPU; None: the experiment's rule holds."""
    removes_home: bool = False
    """True if the agent removes its folder when it ends in order or by silence; False: the folder,
    with its logs, stays for the fleet."""

    shared_storage: SharedStorage | None = None
    """Storage that the trials of the pool write their outputs to; None: a disk of this machine."""

    def __post_init__(self) -> None:
        """Raise InvalidArgumentError if a number of trials or of seconds is below its minimum."""
        for name, number in (
            ("slots", self.slots),
            ("max_trials", self.max_trials),
            ("trials_per_gpu", self.trials_per_gpu),
        ):
            if number is not None and number < 1:
                raise InvalidArgumentError(name, "must be >= 1", number)
        if not self.grace_s >= LEAST_GRACE_S:
            raise InvalidArgumentError("grace_s", f"must be >= {LEAST_GRACE_S:g}", self.grace_s)
        if not self.silence_limit_s > 0:
            raise InvalidArgumentError("silence_limit_s", "must be > 0", self.silence_limit_s)


def write_agent_settings(settings: AgentSettings) -> bytes:
    """Return the content of the file, JSON in UTF-8."""
    return json.dumps({"format": FORMAT, **asdict(settings)}, indent=1).encode()


def parse_agent_settings(content: bytes) -> AgentSettings:
    """Parse an agent's JSON settings; raise InvalidArgumentError if one is missing or wrong.

    Raises:
        InvalidArgumentError: it is no JSON, of another format, or a field is missing or wrong.
    """
    try:
        fields: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError("--settings", "must be JSON", str(error)[:200]) from error
    if not isinstance(fields, Mapping) or fields.get("format") != FORMAT:
        raise InvalidArgumentError(
            "--settings",
            f"must have format {FORMAT}",
            remedy="install the same version of NNI as the installation has",
        )
    try:
        connection = fields["connection"]
        indices = fields.get("gpu_indices")
        return AgentSettings(
            **{
                **{name: value for name, value in fields.items() if name != "format"},
                "connection": ConnectionSettings(
                    **{**connection, "kind": ConnectionKind(connection["kind"])}
                ),
                "setup_lines": tuple(fields.get("setup_lines", ())),
                "shared_storage": _storage_from(fields.get("shared_storage")),
                "gpu_indices": None if indices is None else tuple(map(int, indices)),
            }
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(
            "--settings", "must have the fields of AgentSettings", str(error)[:200]
        ) from error


def _storage_from(fields: Mapping[str, Any] | None) -> SharedStorage | None:
    if fields is None:
        return None
    kinds = {
        "kind": StorageKind(fields["kind"]),
        "local_mount": LocalMount(fields["local_mount"]),
    }
    return SharedStorage(**{**fields, **kinds})
