"""What an agent of the fleet can do to the byte store with its token, over gRPC."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc.aio
import pytest

from nni_proto.bytes.v1 import byte_service_pb2_grpc as pb_grpc
from nni_proto.experiment.v1 import config_pb2
from svc_common.access.audit import AuditTrail
from svc_common.access.authentication import Authenticator
from svc_common.access.keyring import Keyring
from svc_common.access.security import Guard
from svc_common.agent_users import AgentUsers
from svc_common.errors import PermissionDeniedError, UnauthenticatedError
from svc_common.messaging.memory import InMemoryBus
from svc_common.rpc.client import open_channel, token_metadata
from svc_common.rpc.server import GrpcServer
from svc_manager.domain.experiment import ExperimentSettings
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial
from svc_manager.servicers.byte_servicer import ByteServicer
from svc_manager.usecases.storage import Storage
from svc_trial_runner.adapters.manager_blobs import ManagerBlobExchange
from svc_trial_runner.domain.claims import AttemptKey
from tests.support.byte_service import NAME, write
from tests.unit.services.manager.building import EXPERIMENT_ID, Lab
from tests.unit.services.manager.storing import StoreFixture

POOL, OTHER_POOL = "gpus", "cpus"
BOX, SECOND, STRANGER = (
    f"nni-abcd1234-{POOL}-1",
    f"nni-abcd1234-{POOL}-2",
    f"nni-abcd1234-{OTHER_POOL}-1",
)
CODE, SECRET = b"code of the experiment", b"code of another pool"
OWN_TRIALS = "blobs of its own trials only"


@dataclass
class Site:
    """Manager's byte service with agents of two pools, and one running trial of the first agent."""

    users: AgentUsers
    tokens: dict[str, str]
    channel: grpc.aio.Channel
    shelf: StoreFixture
    trial: Trial

    def exchange(self, name: str, *, checkpoints: bool = False) -> ManagerBlobExchange:
        """Return the access of an agent, for the attempt of the first one."""
        attempt = AttemptKey(EXPERIMENT_ID, self.trial.id, 1)
        plain = ManagerBlobExchange(self.channel, token_metadata(self.tokens[name]))
        return plain.of_attempt(attempt, checkpoints=checkpoints)

    def output(self, name: str) -> str:
        return f"output/{EXPERIMENT_ID}/{self.trial.id}/1/{name}"


def key_of(data: bytes) -> str:
    return f"sha256/{hashlib.sha256(data).hexdigest()}"


def experiment_with_code() -> tuple[Experiment, Trial]:
    lab = Lab(settings=ExperimentSettings(pool=POOL))
    config = config_pb2.ExperimentConfig()
    config.code_archive.sha256 = key_of(CODE).removeprefix("sha256/")
    lab.experiment.config = config.SerializeToString()
    return lab.experiment, lab.running(runner=BOX)


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    users = AgentUsers(folder)
    tokens = {
        name: users.issue(name, pool).token
        for name, pool in ((BOX, POOL), (SECOND, POOL), (STRANGER, OTHER_POOL))
    }
    users.save()
    keyring = Keyring("token-of-the-installation", agents_file=users.access_file)
    guard = Guard(Authenticator(keyring, AuditTrail()))
    server = GrpcServer([NAME], guard)
    async with InMemoryBus() as bus:
        shelf = StoreFixture(bus)
        experiment, trial = experiment_with_code()
        shelf.live.append(experiment)
        for content in (CODE, SECRET):
            await shelf.blobs.put(content)
        storage = Storage(shelf.use, shelf.collector, shelf.references, code_travels=True)
        servicer = ByteServicer(shelf.transfers, storage)
        server.register(lambda raw: pb_grpc.add_ByteServiceServicer_to_server(servicer, raw))
        port = await server.start()
        try:
            async with open_channel(f"127.0.0.1:{port}") as channel:
                yield Site(users, tokens, channel, shelf, trial)
        finally:
            await server.stop(0)
            guard.close()


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Site]:
    async with site(tmp_path) as made:
        yield made


async def test_agent_has_what_its_trial_needs(opened: Site, tmp_path: Path) -> None:
    box, weights = opened.exchange(BOX), write(tmp_path / "weights", b"weights")

    code = await box.get(key_of(CODE))
    await box.put(b"[1]")
    await box.put_named(opened.output("stdout"), b"line")
    checkpoint = await opened.exchange(BOX, checkpoints=True).put_file(weights)

    assert code == CODE
    assert await box.get(checkpoint) == b"weights"
    assert await opened.shelf.blobs.get(opened.output("stdout")) == b"line"


@pytest.mark.parametrize("name", [BOX, SECOND, STRANGER])
async def test_agent_downloads_no_blob_that_its_orders_do_not_name(opened: Site, name: str) -> None:
    with pytest.raises(PermissionDeniedError, match=OWN_TRIALS):
        await opened.exchange(name).get(key_of(SECRET))


@pytest.mark.parametrize("name", [SECOND, STRANGER])
async def test_agent_downloads_nothing_for_a_trial_of_another_one(opened: Site, name: str) -> None:
    with pytest.raises(PermissionDeniedError, match=OWN_TRIALS):
        await opened.exchange(name).get(key_of(CODE))


@pytest.mark.parametrize("name", [SECOND, STRANGER])
async def test_agent_stores_nothing_for_a_trial_of_another_one(
    opened: Site, tmp_path: Path, name: str
) -> None:
    forged = write(tmp_path / "forged", b"forged")
    other, checkpoints = opened.exchange(name), opened.exchange(name, checkpoints=True)

    for attack in (
        other.put_named(opened.output("files.tar"), b"forged"),
        other.put(b"forged"),
        checkpoints.put_file(forged),
    ):
        with pytest.raises(PermissionDeniedError, match=OWN_TRIALS):
            await attack

    assert not await opened.shelf.blobs.exists(opened.output("files.tar"))
    assert not await opened.shelf.blobs.exists(key_of(b"forged"))


async def test_hash_of_a_foreign_blob_as_ones_own_checkpoint_opens_nothing(opened: Site) -> None:
    claimed = SECRET  # its hash and size are known to the attacker, its content is not
    sha256 = key_of(claimed).removeprefix("sha256/")
    await opened.shelf.log(EXPERIMENT_ID, sha256)  # as a report of the agent would

    with pytest.raises(PermissionDeniedError, match="no order"):
        await opened.exchange(BOX).get(key_of(claimed))


async def test_revoked_agent_has_nothing(opened: Site) -> None:
    opened.users.revoke([BOX])
    opened.users.save()

    with pytest.raises(UnauthenticatedError):
        await opened.exchange(BOX).get(key_of(CODE))
