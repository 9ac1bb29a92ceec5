import json
from pathlib import Path

import pytest

from nni.cli.main import DONE, FAILED, REFUSED, main
from nni_wire.access import fingerprint, load_entries


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "server" / "access.json"


def run(file: Path, *words: str) -> int:
    return main(["token", *words, "--file", str(file)])


def test_token_is_shown_once_and_kept_as_a_fingerprint(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(file, "create", "alice", "--role", "viewer") == DONE
    token = capsys.readouterr().out.strip()

    (entry,) = load_entries(file.read_text())
    assert (entry.name, entry.role, entry.sha256) == ("alice", "viewer", fingerprint(token))
    assert entry.expires is None
    assert token not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_token_may_end_by_itself(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, "create", "alice", "--days", "7", "--json") == DONE

    (entry,) = load_entries(file.read_text())
    assert json.loads(capsys.readouterr().out)["role"] == "user"
    assert entry.created is not None
    assert entry.expires is not None
    assert (entry.expires - entry.created).days == 7


def test_certificate_is_let_in_by_its_name(file: Path) -> None:
    assert run(file, "create", "box", "--role", "admin", "--common-name", "box.lab") == DONE

    (entry,) = load_entries(file.read_text())
    assert (entry.common_name, entry.sha256) == ("box.lab", "")


def test_list_shows_who_and_no_token(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(file, "create", "alice")
    token = capsys.readouterr().out.strip()

    assert run(file, "ls") == DONE
    shown = capsys.readouterr().out

    assert "alice  user" in shown
    assert token not in shown
    assert fingerprint(token) not in shown


def test_who_is_withdrawn_is_gone(file: Path) -> None:
    run(file, "create", "alice")
    run(file, "create", "bob")

    assert run(file, "rm", "alice") == DONE

    assert [entry.name for entry in load_entries(file.read_text())] == ["bob"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("create", "a b"), REFUSED, "name must be"),
        (("create", "bob", "--role", "root"), REFUSED, "role must be one of"),
        (("create", "alice"), FAILED, "alice already"),
        (("rm", "unknown"), FAILED, "no unknown"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    file: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    run(file, "create", "alice")
    before = file.read_text()

    assert run(file, *words) == code
    assert said in capsys.readouterr().err
    assert file.read_text() == before


def test_file_that_is_none_is_left_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.parent.mkdir()
    file.write_text("precious")

    assert run(file, "create", "alice") == REFUSED
    assert "cannot be used as an access file" in capsys.readouterr().err
    assert file.read_text() == "precious"
