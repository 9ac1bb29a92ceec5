"""Services of the compose file: entry points, users, rights and secrets as it describes them.

NATS and Redis are processes of this machine, the object store is the one of the tests.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.deployment import (
    DEPLOY,
    SECRETS,
    SERVICE_IMAGES,
    compose_environment,
    compose_secrets,
    read_compose,
    read_image,
)
from tests.support.ports import free_port
from tests.support.process_deployment import Addresses, Deployment, Part, deployed
from tests.support.stores import S3_ACCESS_KEY, S3_SECRET_KEY, S3Server, redis_server
from tests.support.tls_proxy import tls_proxy

TOKEN = SECRETS["NNI_TOKEN"]
ORDER = ("dispatcher", "compressor", "nas", "manager", "fleet", "trial-runner")
ALONE = (
    "dispatcher:7502",
    "compressor:7504",
    "nas:7505",
    "manager:7501",
    "manager:8080",
    "manager:7506",
    "trial-runner:7503",
)


@dataclass(frozen=True)
class ComposeDeployment:
    """Running services of the compose file."""

    processes: Deployment
    parts: Mapping[str, Part]
    secrets: Mapping[str, str]
    """Values of the secret variables of `.env`."""


def listening(addresses: Addresses) -> None:
    """Map the addresses that a service binds, and that its health check calls, to its own."""
    for name in ALONE:
        port = name.rpartition(":")[2]
        addresses.put(f"0.0.0.0:{port}", f"0.0.0.0:{addresses.port(name)}")
        addresses.put(f"127.0.0.1:{port}", f"127.0.0.1:{addresses.port(name)}")


@contextmanager
def compose_deployment(
    folder: Path, s3: S3Server, shared: Sequence[Path], order: Sequence[str] = ORDER
) -> Iterator[ComposeDeployment]:
    """Start everything; stop it at the end.

    Args:
        folder: of all files.
        s3: object store.
        shared: folders that all containers have at the same path.
        order: our services, in the order of their start.
    """
    secrets = {**SECRETS, "NNI_S3_ACCESS_KEY": S3_ACCESS_KEY, "NNI_S3_SECRET_KEY": S3_SECRET_KEY}
    made = {**os.environ, "NNI_DEPLOY_FOLDER": str(folder)}
    (folder / ".env").write_text("".join(f"{name}={text}\n" for name, text in secrets.items()))
    subprocess.run([DEPLOY / "make-secrets"], env=made, check=True, capture_output=True)
    certificates = folder / "certs"
    addresses = Addresses([*ALONE, "nats:4222"])
    listening(addresses)
    settings = {
        **secrets,
        "GRPC_PORT": addresses.port("manager:7501"),
        "FRONT_PORT": str(free_port()),
    }
    bus = read_compose(secrets)["services"]["nats"]
    # Where the container has its files, ports and name for itself.
    (folder / "bus").mkdir()
    for name in ("nats.conf", "users.conf", "tls.conf"):
        (folder / name).write_text((DEPLOY / "nats" / name).read_text())
    (folder / "passwords.conf").write_text((certificates / "passwords.conf").read_text())
    agents = certificates / "agents"
    (folder / "agents").symlink_to(agents)
    addresses.put("/var/lib/nni/agents", str(agents))
    bus_config = folder / "nats.conf"
    monitor = Addresses(["8222"]).port("8222")
    here = {
        "/etc/nats/nni.conf": str(bus_config),
        "/etc/nats/start.sh": str(DEPLOY / "nats" / "start.sh"),
        "8222": monitor,
    }
    command = [here.get(word, word) for word in bus["command"]]
    variables = bus["environment"] | {
        "NNI_NATS_PORT": addresses.port("nats:4222"),
        "NNI_NATS_STORE": str(folder / "bus"),
    }
    parts = [
        Part("nats", command, variables, secrets=compose_secrets("nats", certificates)),
        *(compose_part(name, settings, certificates) for name in order),
    ]

    with (
        redis_server(folder / "redis", SECRETS["REDIS_PASSWORD"]) as redis,
        encrypted(certificates, "redis", redis.address) as views,
        encrypted(certificates, "s3", s3.endpoint.removeprefix("http://")) as bytes_,
    ):
        addresses.put("redis:6379", views)
        addresses.put("s3:8333", bytes_)
        by_name = {part.name: part for part in parts}
        with deployed(folder / "run", addresses, parts, [*shared, agents]) as processes:
            processes.ca = certificates / "ca.crt"
            yield ComposeDeployment(processes, by_name, secrets)


def compose_part(name: str, secrets: dict[str, str], certificates: Path) -> Part:
    """Return one of our services with entry point, user, rights and secrets of the compose file."""
    image, service = read_image(SERVICE_IMAGES[name]), read_compose(secrets)["services"][name]
    return Part(
        name,
        (*service.get("entrypoint", image.entrypoint), *service.get("command", image.command)),
        compose_environment(name, secrets),
        image.health_check,
        compose_secrets(name, certificates),
        service.get("user", image.user),
        service.get("cap_add", []),
    )


def encrypted(certificates: Path, service: str, address: str) -> AbstractContextManager[str]:
    """Put a TLS proxy in front of a plain-text server, as the deployment requires TLS."""
    return tls_proxy(address, certificates / f"{service}.crt", certificates / f"{service}.key")
