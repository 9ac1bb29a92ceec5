import json

import pytest

from nni.cli.main import DONE, REFUSED, main
from nni.experiment.endpoint import read_endpoint
from nni_proto.experiment.v1 import experiment_pb2
from tests.support.in_memory_manager import InMemoryManager


def test_up_names_services_that_are_up_already(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--json"]) == DONE

    assert json.loads(capsys.readouterr().out) == {
        "http": manager.http,
        "grpc": manager.grpc,
        "wasUp": True,
    }


def test_durability_of_services_that_are_up_is_not_changed(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--durability", "process"]) == DONE

    assert "--durability has no effect on services that are up" in capsys.readouterr().err


def test_unknown_durability_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--durability", "disk"]) == REFUSED

    assert "'process', 'power'" in capsys.readouterr().err


def test_down_without_services_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["down"]) == DONE

    assert "The services are not up." in capsys.readouterr().out


def test_down_stops_experiments_and_ends_the_supervisor(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")

    assert main(["down"]) == DONE

    assert manager.known["abcd1234"].state == experiment_pb2.EXPERIMENT_STATE_STOPPED
    assert read_endpoint() is None
    assert "The services are down." in capsys.readouterr().out


def test_down_ends_services_that_do_not_stop_an_experiment(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.refuses_stop = True

    assert main(["down"]) == DONE

    assert "not every experiment could be stopped" in capsys.readouterr().err
    assert read_endpoint() is None


@pytest.mark.parametrize("command", ["up", "down"])
def test_services_of_another_machine_are_left_alone(
    command: str, manager: InMemoryManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"version": "1", "grpc": manager.grpc, "http": manager.http}
    manager.documents["/api/v1/nni/version"] = document
    monkeypatch.setenv("NNI_ENDPOINT", manager.http)
    monkeypatch.setenv("NNI_TOKEN", "t0ken")

    assert main([command]) == REFUSED
