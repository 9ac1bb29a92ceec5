"""Deployment whose clients and agents share no folder; a real S3 server stores the blobs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from nni.experiment.client import ManagerClient
from nni.experiment.endpoint import Endpoint
from tests.support.process_deployment import Addresses, Deployment, Part, deployed
from tests.support.servers import nats_server
from tests.support.stores import S3Server, s3_server

TOKEN = "token-of-the-byte-tests"
AGENTS = ("agent-1", "agent-2")
_MANAGER = "manager:7501"
_HTTP = "manager:8080"
_DISPATCHER = "dispatcher:7502"


@dataclass(frozen=True)
class ByteDeployment:
    """Running deployment, its S3 server and its parts."""

    deployment: Deployment
    s3: S3Server
    folder: Path
    parts: Mapping[str, Part]

    def client(self) -> ManagerClient:
        """Return a client that connects like one on another machine."""
        addresses = self.deployment.addresses
        http = f"http://{addresses.of(_HTTP)}"
        return ManagerClient(Endpoint("test", 0, "", http, addresses.of(_MANAGER), "", TOKEN))

    def restart(self, name: str, variables: Mapping[str, str]) -> None:
        """Kill a part with SIGKILL and start it again with other variables."""
        self.deployment.kill(name)
        part = self.parts[name]
        self.deployment.start(replace(part, variables={**part.variables, **variables}))


@contextmanager
def byte_deployment(
    folder: Path, variables: Mapping[str, str] | None = None
) -> Iterator[ByteDeployment]:
    """Start bus, S3 server, dispatcher, manager and two agents of two slots each.

    Args:
        folder: folder for all files.
        variables: additional variables of the manager.
    """
    addresses = Addresses([_MANAGER, _HTTP, _DISPATCHER])
    with s3_server(folder / "s3") as s3, nats_server(folder / "nats", TOKEN) as nats:
        settings = s3.settings(bucket="bytes")
        key = {
            "NNI_S3_ENDPOINT": settings.endpoint,
            "NNI_S3_ACCESS_KEY": settings.access_key,
            "NNI_S3_SECRET_KEY": settings.secret_key,
            "NNI_S3_BUCKET": settings.bucket,
        }

        def part(name: str, module: str, own: Mapping[str, str], address: str = "") -> Part:
            home = folder / "homes" / name
            common = {
                "HOME": str(home),
                "NNI_HOME": str(home / "state"),
                "NNI_NATS_URL": nats.url,
                "NNI_TOKEN": TOKEN,
                "NNI_VERSION": "test",
            }
            check = ("python", "-P", "-m", "svc_common.health", address) if address else ()
            home.mkdir(parents=True)
            return Part(name, ("python", "-P", "-m", module), {**common, **own}, check)

        manager = {
            "NNI_MANAGER_GRPC": _MANAGER,
            "NNI_MANAGER_HTTP": _HTTP,
            "NNI_DISPATCHER_GRPC": _DISPATCHER,
            "NNI_BYTES_TRAVEL": "yes",
            "NNI_STOP_ON_TERM": "no",
        }
        agent = {"NNI_RUNNER_MANAGER_GRPC": _MANAGER, "NNI_RUNNER_SLOTS": "2"}
        parts = [
            part(
                "dispatcher",
                "svc_dispatcher",
                {**key, "NNI_DISPATCHER_GRPC": _DISPATCHER},
                _DISPATCHER,
            ),
            part("manager", "svc_manager", {**key, **manager, **(variables or {})}, _MANAGER),
            *(part(name, "svc_trial_runner", agent) for name in AGENTS),
        ]
        with deployed(folder / "run", addresses, parts) as deployment:
            yield ByteDeployment(deployment, s3, folder, {one.name: one for one in parts})
