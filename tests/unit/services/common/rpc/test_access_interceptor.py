import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from nni_proto.experiment.v1 import history_service_pb2 as history_pb
from nni_proto.experiment.v1 import history_service_pb2_grpc as history_grpc
from nni_proto.trial.v1 import trial_service_pb2 as pb
from nni_proto.trial.v1 import trial_service_pb2_grpc as pb_grpc
from nni_wire.access import AccessEntry, dump_entries, fingerprint
from svc_common import errors
from svc_common.access.audit import AuditTrail
from svc_common.access.authentication import Authenticator
from svc_common.access.current_call import audit_folder
from svc_common.access.keyring import Keyring
from svc_common.access.security import Guard
from svc_common.access.transport import PLAIN, Transport
from svc_common.rpc.client import open_channel, token_metadata
from svc_common.rpc.server import GrpcServer
from tests.support.certificates import Authority

NAME = "nni_proto.trial.v1.TrialService"
GET, KILL = f"/{NAME}/GetTrial", f"/{NAME}/KillTrial"
TOKENS = {"vera": "viewer", "uma": "user"}


class Trials(pb_grpc.TrialServiceServicer):
    """Servicer that records requests and refuses to kill the trial `gone`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def GetTrial(self, request: pb.GetTrialRequest, context: object) -> pb.GetTrialResponse:
        self.asked.append(request.trial_id)
        return pb.GetTrialResponse()

    async def KillTrial(
        self, request: pb.KillTrialRequest, context: object
    ) -> pb.KillTrialResponse:
        if request.trial_id == "gone":
            raise errors.NotFoundError("trial", "gone")
        audit_folder(f"/data/{request.experiment_id}")
        return pb.KillTrialResponse()


class Histories(history_grpc.HistoryServiceServicer):
    """Servicer of a stream without end."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def SaveExperiment(
        self, request: history_pb.SaveExperimentRequest, context: object
    ) -> AsyncIterator[history_pb.SaveExperimentResponse]:
        piece = history_pb.FilePiece(data=bytes(1024 * 1024))
        try:
            while True:
                yield history_pb.SaveExperimentResponse(piece=piece)
        finally:
            self.closed.set()


class Site:
    """A server and its servicers."""

    def __init__(
        self, folder: Path, address: str, trials: Trials, histories: Histories, transport: Transport
    ) -> None:
        self.folder = folder
        self.histories = histories
        self.address = address
        self.trials = trials
        self.transport = transport

    async def call(self, method: str, request: bytes, token: str = "") -> str:
        """Send bytes; return the name of the status."""
        async with open_channel(self.address, self.transport) as channel:
            call: Any = channel.unary_unary(method)
            try:
                await call(request, metadata=token_metadata(token) if token else (), timeout=10)
            except grpc.aio.AioRpcError as error:
                return error.code().name
            return "OK"

    def deeds(self) -> list[dict[str, str]]:
        text = (self.folder / "log" / "audit.log").read_text()
        return [json.loads(line) for line in text.splitlines()]


@asynccontextmanager
async def serving(
    folder: Path, server_side: Transport = PLAIN, client_side: Transport = PLAIN
) -> AsyncIterator[Site]:
    access = folder / "access.json"
    entries = [AccessEntry(name, role, fingerprint(name)) for name, role in TOKENS.items()]
    entries.append(AccessEntry("box", "user", common_name="box.lab"))
    access.write_text(dump_entries(entries))
    access.chmod(0o600)
    authenticator = Authenticator(
        Keyring("own", access, agent_token="agents'"), AuditTrail(folder / "log")
    )
    trials = Trials()  # type: ignore[abstract] # no test calls the other methods
    server = GrpcServer([NAME], Guard(authenticator, server_side))
    histories = Histories()  # type: ignore[abstract] # no test calls the other methods
    server.register(lambda one: pb_grpc.add_TrialServiceServicer_to_server(trials, one))
    server.register(lambda one: history_grpc.add_HistoryServiceServicer_to_server(histories, one))
    port = await server.start()
    yield Site(folder, f"localhost:{port}", trials, histories, client_side)
    await server.stop(0.1)
    authenticator.close()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with serving(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("token", "get", "kill"),
    [
        ("own", "OK", "OK"),
        ("uma", "OK", "OK"),
        ("vera", "OK", "PERMISSION_DENIED"),
        ("agents'", "PERMISSION_DENIED", "PERMISSION_DENIED"),
        ("unknown", "UNAUTHENTICATED", "UNAUTHENTICATED"),
        ("", "UNAUTHENTICATED", "UNAUTHENTICATED"),
    ],
)
async def test_each_caller_has_the_permissions_of_the_table(
    site: Site, token: str, get: str, kill: str
) -> None:
    assert await site.call(GET, b"", token) == get
    assert await site.call(KILL, b"", token) == kill


async def test_each_call_of_a_method_is_checked_by_its_own_credentials(site: Site) -> None:
    tokens = ["uma", "vera", "", "unknown", "own", "vera"]

    codes = [await site.call(KILL, b"", token) for token in tokens]

    refused = "PERMISSION_DENIED"
    assert codes == ["OK", refused, "UNAUTHENTICATED", "UNAUTHENTICATED", "OK", refused]


async def test_changing_calls_are_audited_with_their_outcome(site: Site) -> None:
    gone = pb.KillTrialRequest(experiment_id="exp", trial_id="gone", request_id="r1")
    live = pb.KillTrialRequest(experiment_id="exp", trial_id="abcde", request_id="r2")

    await site.call(KILL, live.SerializeToString(), "uma")
    await site.call(KILL, gone.SerializeToString(), "uma")
    await site.call(KILL, live.SerializeToString(), "vera")
    await site.call(GET, b"", "vera")

    done, failed, refused = site.deeds()
    assert (done["caller"], done["outcome"], done["request"]) == ("uma", "OK", "r2")
    assert (done["experiment"], done["trial"], done["what"]) == ("exp", "abcde", KILL)
    assert (failed["outcome"], failed["trial"]) == ("NotFoundError", "gone")
    assert (refused["caller"], refused["outcome"]) == ("vera", "PermissionDeniedError")


async def test_audit_record_names_the_folders_of_a_call(site: Site) -> None:
    for name in ("one", "two"):
        request = pb.KillTrialRequest(experiment_id=name, trial_id="abcde")
        await site.call(KILL, request.SerializeToString(), "uma")

    assert [deed["folder"] for deed in site.deeds()] == ["/data/one", "/data/two"]


async def test_stream_that_its_client_leaves_is_audited_after_the_end_of_the_call(
    site: Site,
) -> None:
    request = history_pb.SaveExperimentRequest(experiment_id="exp")
    async with open_channel(site.address) as channel:
        stub: Any = history_grpc.HistoryServiceStub(channel)
        stream = stub.SaveExperiment(request, metadata=token_metadata("uma"))
        await stream.read()

        # The server waits for room to send: its generator is closed later, by another task.
        stream.cancel()
        async with asyncio.timeout(30):
            await site.histories.closed.wait()

    (deed,) = site.deeds()
    assert (deed["caller"], deed["experiment"]) == ("uma", "exp")
    assert deed["outcome"] in {"GeneratorExit", "CancelledError"}
    assert deed["peer"] in {"127.0.0.1", "::1"}


async def test_request_of_an_unknown_caller_is_not_decoded(site: Site) -> None:
    assert await site.call(GET, b"\xff\xff", "unknown") == "UNAUTHENTICATED"
    assert await site.call(KILL, b"\xff\xff", "vera") == "PERMISSION_DENIED"
    assert await site.call(GET, b"\xff\xff", "uma") == "INVALID_ARGUMENT"
    assert site.trials.asked == []


@pytest.mark.parametrize("kind", ["Bearer", "bearer", "BEARER"])
async def test_scheme_of_the_token_is_case_insensitive(site: Site, kind: str) -> None:
    async with open_channel(site.address) as channel:
        call: Any = channel.unary_unary(GET)
        answer = await call(b"", metadata=(("authorization", f"{kind} own"),), timeout=10)

    assert pb.GetTrialResponse.FromString(answer) == pb.GetTrialResponse()


async def test_client_certificate_has_the_role_of_its_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")
    service, box, other = (authority.sign(name) for name in ("service", "box.lab", "other.lab"))
    server_side = Transport(service.certificate, service.key, client_ca=authority.ca)

    for own, status in ((box, "OK"), (other, "UNAUTHENTICATED")):
        client_side = Transport(own.certificate, own.key, ca=authority.ca)
        async with serving(tmp_path, server_side, client_side) as site:
            assert await site.call(KILL, b"", "") == status
            assert await site.call(KILL, b"", "vera") == "PERMISSION_DENIED", "a token wins"
