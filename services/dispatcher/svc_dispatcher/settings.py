"""Settings of the dispatcher, read once from the environment."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from svc_common import environment
from svc_common.access.security import ON_LOOPBACK, SecuritySettings, read_security_settings
from svc_common.code_user import SAME_USER, CodeUser, read_code_user
from svc_common.storage.s3_settings import S3Settings, read_s3_settings

NNI_ALGORITHM_TIMEOUT_S: Final = "NNI_ALGORITHM_TIMEOUT_S"
NNI_ALGORITHM_IDLE_S: Final = "NNI_ALGORITHM_IDLE_S"
NNI_CLASS_CHECK_TIMEOUT_S: Final = "NNI_CLASS_CHECK_TIMEOUT_S"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a dispatcher process: home, bus, gRPC address, time limits, stores, security."""

    home: Path
    """Folder of the installation's state."""
    nats_url: str
    token: str = field(repr=False)
    """Secret presented to the bus and required from callers."""
    grpc_host: str
    grpc_port: int
    """0 = a free port, announced when the service is ready."""
    replicas: int
    """Number of copies that a clustered bus keeps of each stream."""
    answer_timeout_s: float
    """Time limit of an algorithm for one command, after which it counts as hanging; > 0."""
    idle_limit_s: float
    """Time after which an algorithm without trials and requests is stopped; > 0."""
    check_timeout_s: float
    """Time limit for the import of a custom class; > 0."""
    inherited: dict[str, str] = field(repr=False)
    """Environment of hosts whose experiment has none."""
    version: str = "unknown"
    """Version of NNI, for metrics and traces."""
    s3: S3Settings | None = None
    """S3 endpoint of the blob store; None: a folder below `home`."""
    security: SecuritySettings = ON_LOOPBACK
    """Transport security and access rules."""
    code_user: CodeUser = SAME_USER
    """Account of algorithm hosts and of checks."""


def read_settings() -> Settings:
    """Build the dispatcher's settings from environment variables; raise if one is invalid.

    Raises:
        InvalidArgumentError: a variable is missing or malformed.
    """
    host, port = environment.address(environment.NNI_DISPATCHER_GRPC, "127.0.0.1:0")
    return Settings(
        home=environment.home(),
        nats_url=environment.text(environment.NNI_NATS_URL),
        token=environment.text(environment.NNI_TOKEN),
        grpc_host=host,
        grpc_port=port,
        replicas=environment.integer(environment.NNI_BUS_REPLICAS, 1),
        answer_timeout_s=environment.number(NNI_ALGORITHM_TIMEOUT_S, 600.0),
        idle_limit_s=environment.number(NNI_ALGORITHM_IDLE_S, 60.0),
        check_timeout_s=environment.number(NNI_CLASS_CHECK_TIMEOUT_S, 20.0),
        inherited=environment.for_user_code(),
        version=environment.text(environment.NNI_VERSION, "unknown"),
        s3=read_s3_settings(),
        security=read_security_settings(),
        code_user=read_code_user(),
    )
