"""Settings of the compressor, read once from the environment."""

from dataclasses import dataclass, field
from pathlib import Path

from svc_common import environment
from svc_common.access.security import ON_LOOPBACK, SecuritySettings, read_security_settings


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a compressor process: home, bus, copies of streams, token, gRPC, TLS, access."""

    home: Path
    """Folder of the installation's state."""
    nats_url: str
    token: str = field(repr=False)
    """Secret presented to the bus and required from callers."""
    grpc_host: str
    grpc_port: int
    """0: a free port, announced when the service is ready."""
    replicas: int
    """Number of copies that a clustered bus keeps of each stream."""
    version: str = "unknown"
    """Version of NNI, for metrics."""
    security: SecuritySettings = ON_LOOPBACK
    """Transport security and access rules."""


def read_settings() -> Settings:
    """Build the compressor's settings from environment variables; raise if one is invalid.

    Raises:
        InvalidArgumentError: a variable is missing or malformed.
    """
    host, port = environment.address(environment.NNI_COMPRESSOR_GRPC, "127.0.0.1:0")
    return Settings(
        home=environment.home(),
        nats_url=environment.text(environment.NNI_NATS_URL),
        token=environment.text(environment.NNI_TOKEN),
        grpc_host=host,
        grpc_port=port,
        replicas=environment.integer(environment.NNI_BUS_REPLICAS, 1),
        version=environment.text(environment.NNI_VERSION, "unknown"),
        security=read_security_settings(),
    )
