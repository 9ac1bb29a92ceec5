"""Environment of the client of an experiment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from svc_common.client_environment import ENVIRONMENT_NAME, client_side


def test_stored_environment_and_interpreter_are_those_of_the_client(tmp_path: Path) -> None:
    stored = {"environment": {"PATH": "/client"}, "interpreter": "/client/python"}
    (tmp_path / ENVIRONMENT_NAME).write_text(json.dumps(stored))

    client = client_side(str(tmp_path), "/other", {"PATH": "/service"})

    assert (client.environment, client.interpreter) == ({"PATH": "/client"}, "/client/python")


def test_without_a_file_they_are_those_of_the_service(tmp_path: Path) -> None:
    client = client_side(str(tmp_path / "none"), "/other", {"PATH": "/service"})

    assert (client.environment, client.interpreter) == ({"PATH": "/service"}, "/other")


def test_secrets_are_left_out(tmp_path: Path) -> None:
    client = client_side(str(tmp_path), "", {"PATH": "/bin", "NNI_TOKEN": "secret"})

    assert client.without_secrets() == {"PATH": "/bin"}
    assert "secret" not in repr(client)


@pytest.mark.parametrize("text", ["{", "[]"])
def test_damaged_file_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / ENVIRONMENT_NAME).write_text(text)

    with pytest.raises(ValueError, match=r"environment|line 1"):
        client_side(str(tmp_path), "", {})


def test_file_is_not_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}")
    (tmp_path / ENVIRONMENT_NAME).symlink_to("secret")

    with pytest.raises(OSError, match="link"):
        client_side(str(tmp_path), "", {})
