from pathlib import Path

import pytest

from svc_common.storage.own_files import DAMAGED, place_for_file, private_folder, set_aside


def aside(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if DAMAGED in path.name]


def test_folder_is_created_for_this_user_only(tmp_path: Path) -> None:
    private_folder(tmp_path / "a")

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_open_folder_is_closed_to_others_and_its_content_stays(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    (tmp_path / "a" / "file").touch()

    private_folder(tmp_path / "a")

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "file").exists()


def test_file_in_place_of_a_folder_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("content")

    private_folder(tmp_path / "log")

    assert (tmp_path / "log").is_dir()
    assert [path.read_text() for path in aside(tmp_path)] == ["content"]


@pytest.mark.parametrize("kind", ["folder", "broken link"])
def test_what_is_no_file_is_set_aside(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nothing")

    place_for_file(path)

    assert not path.is_symlink()
    assert not path.exists()
    assert len(aside(tmp_path)) == 1


def test_regular_file_and_free_place_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")

    place_for_file(tmp_path / "file")
    place_for_file(tmp_path / "missing")

    assert [path.read_text() for path in tmp_path.iterdir()] == ["content"]


def test_file_that_cannot_be_renamed_raises_nothing(tmp_path: Path) -> None:
    set_aside(tmp_path / "missing" / "file", "it is damaged")

    assert list(tmp_path.iterdir()) == []
