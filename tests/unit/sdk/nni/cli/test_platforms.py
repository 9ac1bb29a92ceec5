import json
from pathlib import Path

import pytest

from nni.cli.main import DONE, FAILED, REFUSED, main
from nni_wire.values import from_value
from tests.support.in_memory_manager import InMemoryManager

FILE = """
trainingService:
  - platform: local
  - platform: remote
    machineList: [{host: gpu-1, user: ann, password: hush}]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "config.yml"
    path.write_text(FILE)
    return str(path)


@pytest.fixture
def leftovers(manager: InMemoryManager) -> InMemoryManager:
    """Manager whose platforms have something of an ended and of a live experiment."""
    left = manager.pools.left.leftovers
    left.add(platform_index=1, pool="exp-old", agents=["nni-abcdefgh-exp-old-1"])
    left.add(platform_index=1, pool="exp-live", agents=["nni-abcdefgh-exp-live-1"], in_use=True)
    return manager


def test_clean_sends_all_platforms_of_the_file_with_their_secrets(
    leftovers: InMemoryManager, file: str
) -> None:
    assert main(["platform", "clean", "--config", file, "--yes"]) == DONE

    (request,) = leftovers.pools.cleanings
    assert not request.dry_run
    assert [one.platform for one in request.platforms] == ["local", "remote"]
    assert list(request.platforms[1].secret_paths) == ["machineList[0].password"]
    options = from_value(request.platforms[1].options)
    assert "hush" in json.dumps(options)


def test_what_is_in_use_is_named_with_what_ends_it(
    leftovers: InMemoryManager, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["platform", "clean", "--config", file, "--yes"]) == DONE

    out = "".join(capsys.readouterr())
    assert "exp-live is in use" in out
    assert "nnictl stop live" in out
    assert "removed" in out


def test_dry_run_removes_nothing(
    leftovers: InMemoryManager, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["platform", "clean", "--config", file, "--dry-run", "--json"]) == DONE

    assert [one.dry_run for one in leftovers.pools.cleanings] == [True]
    found = json.loads(capsys.readouterr().out)["leftovers"]
    assert [(one["pool"], one["state"]) for one in found] == [
        ("exp-old", "left"),
        ("exp-live", "in use"),
    ]


def test_without_a_terminal_a_confirmation_is_needed(
    leftovers: InMemoryManager, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["platform", "clean", "--config", file]) == REFUSED

    assert leftovers.pools.cleanings == []
    assert "--yes" in capsys.readouterr().err


def test_json_is_never_mixed_with_a_question(
    leftovers: InMemoryManager,
    file: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)

    assert main(["platform", "clean", "--config", file, "--json"]) == REFUSED

    assert leftovers.pools.cleanings == []
    assert capsys.readouterr().out == ""


def test_platform_that_could_not_be_reached_is_an_error(
    manager: InMemoryManager, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.pools.left.problems.append("trainingService[1] (remote) gpu-1 cannot be reached")

    assert main(["platform", "clean", "--config", file, "--yes"]) == FAILED

    assert "gpu-1 cannot be reached" in capsys.readouterr().err
