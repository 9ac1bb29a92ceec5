import socket
from contextlib import closing

from nni.cli.front_state import CLOSED, front_state, is_reachable
from nni.experiment.client import ManagerClient
from nni.experiment.endpoint import read_endpoint
from tests.support.in_memory_manager import InMemoryManager
from tests.support.ports import free_port


def test_port_of_this_machine_is_tried_on_loopback() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as front:
        assert is_reachable("no-such-host.invalid", front.getsockname()[1], is_local=True)


def test_closed_port_is_not_reachable() -> None:
    assert not is_reachable("127.0.0.1", free_port(), is_local=False)


def test_front_whose_fleet_was_killed_is_not_shown_as_open(manager: InMemoryManager) -> None:
    endpoint = read_endpoint()
    assert endpoint is not None
    with ManagerClient(endpoint) as client:
        assert front_state(client) == CLOSED

        manager.invitations.front.address = f"127.0.0.1:{free_port()}"
        manager.invitations.front.authority_sha256 = "ab12"

        assert front_state(client).startswith("not reachable at 127.0.0.1:")
