from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.installation import INSTALLATION_FILE, installation_id
from tests.support.unreadable_files import make_unreadable


def test_id_is_drawn_once_into_a_private_file(tmp_path: Path) -> None:
    first = installation_id(tmp_path)

    assert len(first) == 8
    assert installation_id(tmp_path) == first
    assert (tmp_path / INSTALLATION_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [INSTALLATION_FILE]


def test_installations_have_ids_of_their_own(tmp_path: Path) -> None:
    homes = [tmp_path / "a", tmp_path / "b"]
    for home in homes:
        home.mkdir()

    assert len({installation_id(home) for home in homes}) == 2


@pytest.mark.parametrize("content", [b"", b"short", b"UPPER123", b"\xff" * 8])
def test_damaged_file_is_set_aside(tmp_path: Path, content: bytes) -> None:
    (tmp_path / INSTALLATION_FILE).write_bytes(content)

    drawn = installation_id(tmp_path)

    assert installation_id(tmp_path) == drawn
    assert any("damaged" in path.name for path in tmp_path.iterdir())


def test_unreadable_file_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = installation_id(tmp_path)
    with monkeypatch.context() as damaged:
        make_unreadable(damaged, tmp_path / INSTALLATION_FILE)

        installation_id(tmp_path)

    assert installation_id(tmp_path) not in {"", first}


def test_folder_in_place_of_the_file_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / INSTALLATION_FILE).mkdir()

    drawn = installation_id(tmp_path)

    assert installation_id(tmp_path) == drawn
    assert any("damaged" in path.name for path in tmp_path.iterdir())
