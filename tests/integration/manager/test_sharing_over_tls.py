"""Managers that share experiments over mTLS: forwarded calls keep the caller's rights."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.experiment.v1 import history_service_pb2 as history_pb
from nni_wire.access import AccessEntry, dump_entries, fingerprint
from nni_wire.metadata import bearer
from svc_common.access.delegation import ON_BEHALF_KEY
from svc_common.access.transport import Transport
from tests.integration.manager.harness import TIMEOUT_S, Process, site_on
from tests.integration.manager.sharing import Client, Shared, until
from tests.support.certificates import Authority
from tests.support.servers import nats_server
from tests.support.stores import redis_server

VERA_TOKEN = "nni_token-of-a-viewer"
CHANGE = {"params": {"trialConcurrency": 3}}
BY_TYPE = {"update_type": "TRIAL_CONCURRENCY"}


@dataclass
class Keep(Shared):
    """Managers behind mTLS, whose callers have a certificate each."""

    authority: Authority = None  # type: ignore[assignment] # given by the fixture

    async def as_(self, process: Process, common_name: str, token: str = "") -> Client:
        """Open a client that shows a certificate, and a token if it has one."""
        own = self.authority.sign(common_name)
        transport = Transport(certificate=own.certificate, key=own.key, ca=self.authority.ca)
        return await self.client(process, transport, token)

    def deeds(self, what: str) -> list[dict[str, str]]:
        """Give the lines of the audit trail about a method or route."""
        text = (self.site.folder / "nni" / "log" / "audit.log").read_text()
        return [deed for line in text.splitlines() if what in (deed := json.loads(line))["what"]]


@pytest.fixture
async def keep(tmp_path: Path) -> AsyncIterator[Keep]:
    authority = Authority(tmp_path / "certificates")
    security = authority.security(client_ca=True)
    access = tmp_path / "access.json"
    access.write_text(
        dump_entries(
            [
                AccessEntry("uma", "user", common_name="uma.lab"),
                AccessEntry("vic", "viewer", common_name="vic.lab"),
                AccessEntry("vera", "viewer", fingerprint(VERA_TOKEN)),
            ]
        )
    )
    access.chmod(0o600)
    transport = security.transport
    with (
        nats_server(tmp_path / "nats", more=authority.nats_tls()) as bus,
        redis_server(tmp_path / "redis") as redis,
    ):
        async with site_on(bus, tmp_path, security=security) as site, AsyncExitStack() as stack:
            site.variables |= {
                "NNI_TLS_CERT_FILE": str(transport.certificate),
                "NNI_TLS_KEY_FILE": str(transport.key),
                "NNI_TLS_CA_FILE": str(transport.ca),
                "NNI_TLS_CLIENT_CA_FILE": str(transport.client_ca),
                "NNI_ACCESS_FILE": str(access),
            }
            yield Keep(site, redis, stack, security=security, authority=authority)


async def refusal(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value.code(), error.value.details() or ""


async def test_calls_are_passed_on_with_the_rights_of_who_makes_them(keep: Keep) -> None:
    _, one = await keep.manager()
    other, two = await keep.manager()
    experiment_id = await keep.create(one)
    uma, vic = await keep.as_(other, "uma.lab"), await keep.as_(other, "vic.lab")
    stranger = await keep.as_(other, "unknown.lab")
    vera = await keep.as_(other, "unknown.lab", VERA_TOKEN)

    assert await two.update(experiment_id, 3) == 3
    assert await uma.update(experiment_id, 4) == 4
    assert {await one.state(experiment_id) for one in (uma, vic, vera)} == {"RUNNING"}
    for viewer in (vic, vera):
        code, said = await refusal(viewer.update(experiment_id, 5))
        assert code is grpc.StatusCode.PERMISSION_DENIED
        assert "needs the role user" in said
    assert (await refusal(stranger.update(experiment_id, 5)))[0] is grpc.StatusCode.UNAUTHENTICATED
    done = [d for d in keep.deeds("/UpdateExperiment") if d["outcome"] == "OK"]
    callers = [(deed["caller"], deed["role"], deed["by"]) for deed in done]
    # Once at the manager that was called, once at the one that did it.
    assert callers.count(("uma", "user", "certificate")) == 2
    assert callers.count(("installation", "admin", "token")) == 2


async def test_rest_is_passed_on_with_the_rights_of_who_asks(keep: Keep) -> None:
    _, one = await keep.manager()
    other, two = await keep.manager()
    experiment_id = await keep.create(one)
    uma, vic = await keep.as_(other, "uma.lab"), await keep.as_(other, "vic.lab")
    path = f"/experiments/{experiment_id}/experiment"

    shown = await vic.http.get(path)
    refused = await vic.http.put(path, params=BY_TYPE, json=CHANGE)
    changed = await uma.http.put(path, params=BY_TYPE, json=CHANGE)
    by_token = await two.http.put(path, params=BY_TYPE, json=CHANGE)

    assert shown.json()["id"] == experiment_id
    assert refused.status_code == 403
    assert changed.json()["params"]["trialConcurrency"] == 3
    assert by_token.status_code == 200
    callers = [d["caller"] for d in keep.deeds("PUT ") if d["outcome"] == "OK"]
    assert callers.count("uma") == 2


async def test_only_a_manager_may_call_on_behalf_of_others(keep: Keep) -> None:
    _, one = await keep.manager()
    other, _ = await keep.manager()
    experiment_id = await keep.create(one)
    vic = await keep.as_(other, "vic.lab")
    request = pb.UpdateExperimentRequest(experiment_id=experiment_id, trial_concurrency=9)
    said = ((ON_BEHALF_KEY, "admin token root"),)
    path = f"/experiments/{experiment_id}/experiment"

    for metadata in (said, (*bearer(VERA_TOKEN), *said)):
        code, _ = await refusal(
            vic.experiments.UpdateExperiment(request, metadata=metadata, timeout=TIMEOUT_S)
        )
        assert code is grpc.StatusCode.PERMISSION_DENIED
    answer = await vic.http.put(path, params=BY_TYPE, json=CHANGE, headers=dict(said))

    assert answer.status_code == 403


async def test_a_killed_manager_has_a_successor_over_tls_too(keep: Keep) -> None:
    process, one = await keep.manager()
    _, two = await keep.manager()
    experiment_id = await keep.create(one)
    assert await two.update(experiment_id, 3) == 3

    process.process.kill()
    await until(lambda: two.owns(experiment_id))

    assert await two.update(experiment_id, 4) == 4


async def test_deletion_and_loading_may_be_repeated_at_any_manager(keep: Keep) -> None:
    _, one = await keep.manager()
    _, two = await keep.manager()
    experiment_id = await keep.create(one)
    saved = await stopped_and_saved(two, experiment_id)
    deletion = pb.DeleteExperimentRequest(request_id="d1", experiment_id=experiment_id)

    for client in (two, one, two):
        await client.call(client.experiments.DeleteExperiment, deletion)
    assert await one.listed() == await two.listed() == set()
    loaded = [await load(client, experiment_id, saved) for client in (two, one, two)]

    assert loaded == [experiment_id] * 3
    assert await one.listed() == await two.listed() == {experiment_id}


async def test_two_managers_that_are_to_load_the_same_do_it_once(keep: Keep) -> None:
    _, one = await keep.manager()
    _, two = await keep.manager()
    experiment_id = await keep.create(one)
    saved = await stopped_and_saved(two, experiment_id)
    await one.call(
        one.experiments.DeleteExperiment, pb.DeleteExperimentRequest(experiment_id=experiment_id)
    )

    answers = await asyncio.gather(
        load(one, experiment_id, saved, "l1"),
        load(two, experiment_id, saved, "l2"),
        return_exceptions=True,
    )

    refused = [one for one in answers if isinstance(one, grpc.aio.AioRpcError)]
    assert [one for one in answers if isinstance(one, str)] == [experiment_id]
    codes = [(error.code().name, error.details()) for error in refused]
    assert [code for code, _ in codes] == ["FAILED_PRECONDITION"], codes
    assert await one.state(experiment_id) == await two.state(experiment_id) == "STOPPED"


async def stopped_and_saved(client: Client, experiment_id: str) -> list[Any]:
    """Stop an experiment; give all of it."""
    await client.call(
        client.experiments.StopExperiment, pb.StopExperimentRequest(experiment_id=experiment_id)
    )
    request = history_pb.SaveExperimentRequest(experiment_id=experiment_id)
    saving = client.histories.SaveExperiment(request, metadata=client.metadata)
    return [message async for message in saving]


async def load(client: Client, experiment_id: str, saved: list[Any], request_id: str = "l1") -> str:
    async def requests() -> AsyncIterator[history_pb.LoadExperimentRequest]:
        header = history_pb.LoadHeader(request_id=request_id, experiment_id=experiment_id)
        yield history_pb.LoadExperimentRequest(header=header)
        for message in saved[1:]:
            yield history_pb.LoadExperimentRequest(piece=message.piece)

    answer = await client.call(client.histories.LoadExperiment, requests())
    return str(answer.experiment.id)
