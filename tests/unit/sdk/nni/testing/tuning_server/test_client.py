"""Client of a tuning server, against random search behind the service."""

from collections.abc import Iterator

import grpc
import pytest

from nni.testing.tuning_server.client import TuningClient
from tests.support.tuning_server import TuningServer, tuning_server_in_thread

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


@pytest.fixture
def client() -> Iterator[TuningClient]:
    with tuning_server_in_thread(TuningServer()) as address, TuningClient(address) as opened:
        yield opened


def test_parameters_come_by_their_ids(client: TuningClient) -> None:
    session = client.open(SPACE)

    answer = session.generate([3, 5])

    assert list(answer.parameters) == [3, 5]
    assert (answer.exhausted, answer.deferred) == (False, 0)
    assert session.assesses


def test_session_is_closed_after_its_block(client: TuningClient) -> None:
    with client.session(SPACE) as session:
        session.generate([0])

    with pytest.raises(grpc.RpcError, match="no session"):
        session.generate([1])


def test_new_space_holds_for_what_comes_next(client: TuningClient) -> None:
    session = client.open(SPACE)
    session.update_search_space({"x": {"_type": "uniform", "_value": [4, 5]}})

    assert session.generate([0]).parameters[0]["x"] >= 4


def test_server_that_is_not_there_is_a_time_out() -> None:
    with TuningClient("127.0.0.1:1") as client, pytest.raises(grpc.FutureTimeoutError):
        client.wait_ready(0.001)
