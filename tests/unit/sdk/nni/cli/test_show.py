import json
import time
from urllib.parse import urlsplit

import pytest
import yaml

from nni.cli.main import DONE, FAILED, main
from nni_wire.page_login import is_valid_code
from nni_wire.socket_owners import listening_socket
from tests.support.in_memory_manager import TOKEN, InMemoryManager
from tests.support.ports import free_port


def test_config_is_yaml_with_id_and_state(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")

    assert main(["config", "show"]) == DONE
    as_yaml = yaml.safe_load(capsys.readouterr().out)
    assert main(["config", "show", "--json"]) == DONE
    as_json = json.loads(capsys.readouterr().out)

    assert as_yaml == as_json
    assert (as_yaml["id"], as_yaml["status"]) == ("abcd1234", "RUNNING")
    assert as_yaml["config"]["trialCommand"] == "python3 trial.py"


def test_url_names_the_page_and_a_code_for_its_port(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    manager.add_experiment("abcd1234", port=port)

    assert main(["webui", "url"]) == DONE

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"http://127.0.0.1:{port}"
    assert shown[1] == f"All experiments: {manager.http}"
    code = shown[2].partition(f"http://127.0.0.1:{port}/?token=")[2]
    assert is_valid_code(code, TOKEN, port, time.time())
    assert TOKEN not in shown[2]


def test_url_without_an_experiment_is_that_of_all(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["webui", "url"]) == DONE
    code = capsys.readouterr().out.strip().partition(f"{manager.http}/?token=")[2]
    port = urlsplit(manager.http).port or 80
    assert is_valid_code(code, TOKEN, port, time.time(), listening_socket(port))
    assert main(["webui", "url", "--json"]) == DONE
    assert json.loads(capsys.readouterr().out) == [manager.http]


def test_url_of_an_experiment_without_a_page_is_an_error(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234", port=0)

    assert main(["webui", "url", "abcd1234"]) == FAILED

    assert "nnictl view abcd1234" in capsys.readouterr().err
