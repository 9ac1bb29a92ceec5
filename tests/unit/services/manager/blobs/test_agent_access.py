"""Agents get and store the blobs of their own trials only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from svc_common.access.current_call import serving
from svc_common.access.roles import AGENTS_NAME, Caller, Role
from svc_common.errors import (
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
from svc_common.messaging.memory import InMemoryBus
from svc_manager.blobs.agent_access import hashes_ordered
from svc_manager.domain.experiment import ExperimentSettings
from svc_manager.usecases.uploads import Purpose, Upload
from tests.unit.services.manager.building import EXPERIMENT_ID, Lab
from tests.unit.services.manager.storing import SignedUrls, StoreFixture, digest, output_of

POOL = "gpus"
CODE, PARAMETERS, SECRET = b"code", b"parameters", b"of another pool"
CODE_KEY, SECRET_KEY = f"sha256/{digest(CODE)}", f"sha256/{digest(SECRET)}"


@contextmanager
def agent(name: str = "r1", pool: str = POOL) -> Iterator[None]:
    with serving(Caller(name, Role.AGENT, "token", pool)):
        yield


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    yield data


class Bench:
    """Store with an experiment whose code is an archive, and a blob that is none of its business.

    Args:
        bus: of the logs.
        urls: of the store; None: it has none.
    """

    def __init__(self, bus: InMemoryBus, urls: SignedUrls | None = None) -> None:
        self.shelf = StoreFixture(bus, urls=urls)
        self.transfers = self.shelf.transfers
        self.lab = Lab(settings=ExperimentSettings(pool=POOL))
        config = config_pb2.ExperimentConfig()
        config.code_archive.sha256 = digest(CODE)
        self.lab.experiment.config = config.SerializeToString()
        self.shelf.live.append(self.lab.experiment)

    async def fill(self) -> None:
        for content in (CODE, PARAMETERS, SECRET):
            await self.shelf.blobs.put(content)

    def checkpoint(self, data: bytes, trial_id: str, attempt: int = 1) -> Upload:
        return Upload(Purpose.CHECKPOINT, digest(data), len(data), EXPERIMENT_ID, trial_id, attempt)

    async def upload(self, upload: Upload, data: bytes) -> bool:
        """Upload content as agents do; return whether it was sent."""
        route = await self.transfers.prepare_upload(upload)
        if route.stored:
            return False
        if route.url:
            assert self.shelf.urls is not None
            await self.shelf.urls.send(route.url, data)
            await self.transfers.complete_upload(upload)
        else:
            await self.transfers.receive(upload, pieces(data))
        return True

    async def download(self, key: str, trial_id: str, experiment_id: str = EXPERIMENT_ID) -> bytes:
        await self.transfers.prepare_download(key, experiment_id, trial_id)
        sent = self.transfers.send(key, experiment_id, trial_id)
        return b"".join([piece async for piece in sent])


@pytest.fixture(params=[False, True])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    async with InMemoryBus() as bus:
        made = Bench(bus, SignedUrls() if request.param else None)
        await made.fill()
        yield made


async def test_code_and_parameters_of_a_trial_reach_its_agent(bench: Bench) -> None:
    trial = bench.lab.waiting()
    large = value_pb2.Value()
    large.blob_value.sha256 = digest(PARAMETERS)
    trial.parameters = large.SerializeToString()

    with agent():
        code = await bench.download(CODE_KEY, trial.id)
        parameters = await bench.download(f"sha256/{digest(PARAMETERS)}", trial.id)

    assert (code, parameters) == (CODE, PARAMETERS)
    assert hashes_ordered(bench.lab.experiment, trial) == {digest(CODE), digest(PARAMETERS)}


async def test_agents_download_nothing_else(bench: Bench) -> None:
    trial = bench.lab.waiting()
    attempts = [
        ("r1", POOL, SECRET_KEY, EXPERIMENT_ID, trial.id),  # of no order
        ("r1", "others", CODE_KEY, EXPERIMENT_ID, trial.id),  # of another pool
        ("r1", "exp-e9", CODE_KEY, EXPERIMENT_ID, trial.id),
        ("r1", POOL, CODE_KEY, EXPERIMENT_ID, "none"),
        ("r1", POOL, CODE_KEY, "", ""),
    ]

    for name, pool, key, experiment_id, trial_id in attempts:
        with agent(name, pool), pytest.raises(PermissionDeniedError, match="its own trials"):
            await bench.transfers.prepare_download(key, experiment_id, trial_id)
        with agent(name, pool), pytest.raises(PermissionDeniedError):
            await anext(bench.transfers.send(key, experiment_id, trial_id))
    with agent(), pytest.raises(NotFoundError):
        await bench.transfers.prepare_download(CODE_KEY, "e9", trial.id)


async def test_other_callers_are_not_limited(bench: Bench) -> None:
    for name, role in ((AGENTS_NAME, Role.AGENT), ("uma", Role.USER)):
        with serving(Caller(name, role, "token")):
            assert await bench.download(SECRET_KEY, "", "") == SECRET


async def test_checkpoint_is_for_the_agents_of_its_experiment(bench: Bench) -> None:
    trial = bench.lab.running(runner="r1")
    checkpoint = bench.checkpoint(b"weights", trial.id)

    with agent("r1"):
        assert await bench.upload(checkpoint, b"weights")
        assert not await bench.upload(checkpoint, b"weights")
    other = bench.lab.waiting()
    with agent("r2"):
        loaded = await bench.download(checkpoint.key, other.id)

    assert loaded == b"weights"


async def test_name_of_a_foreign_blob_as_ones_checkpoint_does_not_open_it(bench: Bench) -> None:
    trial = bench.lab.running(runner="r1")
    claimed = bench.checkpoint(SECRET, trial.id)

    with agent("r1"):
        route = await bench.transfers.prepare_upload(claimed)
        if route.url:
            with pytest.raises(FailedPreconditionError, match="send the bytes"):
                await bench.transfers.complete_upload(claimed)
        with pytest.raises(PermissionDeniedError, match="no order"):
            await bench.transfers.prepare_download(SECRET_KEY, EXPERIMENT_ID, trial.id)

    assert not route.stored
    assert not await bench.shelf.access.has_uploaded(EXPERIMENT_ID, digest(SECRET))


async def test_agents_store_what_their_own_attempts_have_made(bench: Bench) -> None:
    trial = bench.lab.running(runner="r1")
    output = Upload(Purpose.OUTPUT, digest(b"line"), 4, EXPERIMENT_ID, trial.id, 1, "stdout")
    value = Upload(Purpose.VALUE, digest(b"[1]"), 3, EXPERIMENT_ID, trial.id, 1)
    with agent("r1"):
        await bench.upload(output, b"line")
        await bench.upload(value, b"[1]")

    for refused in (output, value, bench.checkpoint(b"x", trial.id)):
        with agent("r2"), pytest.raises(PermissionDeniedError, match="is not of agent r2"):
            await bench.transfers.prepare_upload(refused)
        with agent("r2"), pytest.raises(PermissionDeniedError):
            await bench.transfers.receive(refused, pieces(b"x"))
        with agent("r2"), pytest.raises(PermissionDeniedError):
            await bench.transfers.complete_upload(refused)
    assert await bench.shelf.blobs.get(output.key) == b"line"


async def test_agents_store_nothing_without_a_trial_and_no_code(bench: Bench) -> None:
    with agent():
        for upload, reason in (
            (Upload(Purpose.VALUE, digest(b"1"), 1), "names no trial"),
            (Upload(Purpose.CODE, digest(b"1"), 1), "no code"),
        ):
            with pytest.raises(PermissionDeniedError, match=reason):
                await bench.transfers.prepare_upload(upload)
        with pytest.raises(NotFoundError):
            await bench.transfers.prepare_upload(output_of(b"line", experiment_id="e9"))


async def test_upload_before_the_claim_was_read_is_tried_again(bench: Bench) -> None:
    trial = bench.lab.waiting()

    with agent(), pytest.raises(UnavailableError, match="claimed"):
        await bench.transfers.prepare_upload(bench.checkpoint(b"x", trial.id))


async def test_checkpoint_that_is_stored_already_is_recorded_for_other_callers(
    bench: Bench,
) -> None:
    await bench.shelf.blobs.put(b"weights")

    with serving(Caller(AGENTS_NAME, Role.AGENT, "token")):
        sent = await bench.upload(bench.checkpoint(b"weights", "t1"), b"weights")

    assert not sent
    assert await bench.shelf.access.has_uploaded(EXPERIMENT_ID, digest(b"weights"))
