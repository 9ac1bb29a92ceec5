"""Settings of the fleet, read once from the environment."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from svc_common import environment
from svc_common.access.security import ON_LOOPBACK, SecuritySettings, read_security_settings
from svc_common.errors import InvalidArgumentError

_LAST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one fleet process: home, bus, manager, security."""

    home: Path
    """Folder of the installation's state; the fleet uses `fleet/` in it."""
    nats_url: str
    token: str = field(repr=False)
    """Secret presented to the bus."""
    manager_grpc: str
    """`host:port` of the manager as this machine reaches it."""
    replicas: int = 1
    """Number of copies that a clustered bus keeps of each stream."""
    version: str = "unknown"
    """Version of NNI, for metrics."""
    credentials_fd: int | None = None
    """Descriptor of the socket to the supervisor, which issues credentials of agents; None: this
    installation cannot issue them."""
    agent_users: Path | None = None
    """Folder of agents' users that bus and managers read, where there is no supervisor; None: this
    fleet writes none."""
    front_host: str = ""
    """Name or address by which agents elsewhere reach this machine; empty: that of its default
    route."""
    front_port: int = 0
    """Port of the TLS front; 0: the one it had last, at first a free one."""
    security: SecuritySettings = ON_LOOPBACK
    """Transport security and access rules."""

    @property
    def folder(self) -> Path:
        """Folder of the fleet's own state."""
        return self.home / "fleet"


def read_settings() -> Settings:
    """Build the fleet's settings from environment variables; raise if one is invalid.

    Raises:
        InvalidArgumentError: a variable is missing or malformed.
    """
    descriptor = environment.integer(environment.NNI_CREDENTIALS_FD, -1)
    manager_host, manager_port = environment.address(environment.NNI_MANAGER_GRPC)
    return Settings(
        home=environment.home(),
        nats_url=environment.text(environment.NNI_NATS_URL),
        token=environment.text(environment.NNI_TOKEN),
        manager_grpc=f"{manager_host}:{manager_port}",
        replicas=environment.integer(environment.NNI_BUS_REPLICAS, 1),
        version=environment.text(environment.NNI_VERSION, "unknown"),
        credentials_fd=descriptor if descriptor >= 0 else None,
        agent_users=environment.path(environment.NNI_AGENT_USERS),
        front_host=environment.text(environment.NNI_FRONT_HOST, ""),
        front_port=_front_port(),
        security=read_security_settings(),
    )


def _front_port() -> int:
    port = environment.integer(environment.NNI_FRONT_PORT, 0)
    if not 0 <= port <= _LAST_PORT:
        raise InvalidArgumentError(
            environment.NNI_FRONT_PORT, f"must be a port, 0 to {_LAST_PORT}", port
        )
    return port
