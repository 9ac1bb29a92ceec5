"""Files of users; `tests/security/test_bus_users.py` tries their permissions at a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc_common.bus_users import CONFIGURATION, main, write_users
from svc_common.errors import InvalidArgumentError


def variables(path: Path) -> dict[str, str]:
    lines = path.read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_each_user_has_a_file_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "bus"

    write_users(folder, ["gpu"], {"box-1": "gpu"})

    assert {path.name for path in folder.iterdir()} == {
        CONFIGURATION, "manager.env", "dispatcher.env", "compressor.env", "nas.env", "fleet.env",
        "pool-gpu.env", "box-1.env",
    }  # fmt: skip
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_user_of_one_agent_has_its_id(tmp_path: Path) -> None:
    write_users(tmp_path, ["gpu"], {"box-1": "gpu"})

    assert variables(tmp_path / "box-1.env")["NNI_RUNNER_ID"] == "box-1"
    assert "NNI_RUNNER_ID" not in variables(tmp_path / "pool-gpu.env")


def test_passwords_begin_with_a_letter_and_stand_in_the_configuration(tmp_path: Path) -> None:
    write_users(tmp_path, [], {})

    password = variables(tmp_path / "manager.env")["NNI_NATS_PASSWORD"]

    assert password[0].isalpha()
    assert password in (tmp_path / CONFIGURATION).read_text("utf-8")
    assert password != variables(tmp_path / "dispatcher.env")["NNI_NATS_PASSWORD"]


def test_existing_users_keep_their_passwords(tmp_path: Path) -> None:
    write_users(tmp_path, [], {})
    before = variables(tmp_path / "manager.env")

    write_users(tmp_path, ["gpu"], {})

    assert variables(tmp_path / "manager.env") == before
    assert (tmp_path / "pool-gpu.env").exists()


def test_name_that_is_no_token_of_a_subject_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        write_users(tmp_path / "bus", ["gpu.*"], {})

    assert not (tmp_path / "bus").exists()


def test_command_writes_the_files(tmp_path: Path) -> None:
    assert main([str(tmp_path), "--pool", "gpu", "--runner", "box-1=gpu"]) == 0

    assert (tmp_path / "box-1.env").exists()


def test_agent_without_a_pool_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "--runner", "box-1"]) == 1

    assert capsys.readouterr().err == "--runner must be ID=POOL, got 'box-1'\n"


def test_agents_of_a_fleet_are_included_and_it_may_reload_the_bus(tmp_path: Path) -> None:
    write_users(tmp_path, [], {}, "agents/agents.conf")

    text = (tmp_path / CONFIGURATION).read_text()
    password = variables(tmp_path / "fleet.env")["NNI_NATS_PASSWORD"]
    assert "\n  include agents/agents.conf\n}" in text
    assert f'user: "reloader", password: "{password}"' in text
    assert not (tmp_path / "reloader.env").exists(), "no process has this user alone"
