import json
from pathlib import Path

import pytest

from nni.cli.main import DONE, FAILED, main
from nni_proto.experiment.v1 import experiment_pb2
from tests.support.in_memory_manager import InMemoryManager


def saved(manager: InMemoryManager, folder: Path, *words: str) -> Path:
    manager.add_experiment("abcd1234")
    assert main(["experiment", "save", "abcd1234", "--path", str(folder), *words]) == DONE
    del manager.known["abcd1234"]
    manager.root = manager.root / "elsewhere"
    return folder / "nni_experiment_abcd1234.zip"


def test_save_names_the_archive_and_its_size(
    manager: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = saved(manager, tmp_path, "--json")

    record = json.loads(capsys.readouterr().out)
    assert record["path"] == str(archive)
    assert record["experimentId"] == "abcd1234"
    assert record["sizeBytes"] == archive.stat().st_size


def test_load_brings_the_experiment_back_as_stopped(
    manager: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = saved(manager, tmp_path)
    code = tmp_path / "code"

    assert main(["experiment", "load", "--path", str(archive), "--codeDir", str(code)]) == DONE

    assert manager.loaded == b"events"
    assert manager.known["abcd1234"].state == experiment_pb2.EXPERIMENT_STATE_STOPPED
    assert (code / "search_space.json").read_text().strip() == "{}"
    assert "let it go on with: nnictl resume abcd1234" in capsys.readouterr().out


def test_unknown_experiment_is_an_error(manager: InMemoryManager, tmp_path: Path) -> None:
    assert main(["experiment", "save", "nope0000", "--path", str(tmp_path)]) == FAILED
