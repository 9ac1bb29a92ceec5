from pathlib import Path

import pytest

from nni.experiment.private_file import write_private


def test_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    write_private(tmp_path / "new" / "file", "text")

    assert (tmp_path / "new" / "file").read_text() == "text"
    assert (tmp_path / "new" / "file").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o644), (0o640, 0o640), (0o666, 0o644)])
def test_readers_of_a_file_keep_access_and_only_its_owner_writes(
    tmp_path: Path, before: int, after: int
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(before)

    write_private(path, "new")

    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == after


def test_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write_private(tmp_path / "file", "1")
    (tmp_path / ".file.new").write_text("left by a crash")

    write_private(tmp_path / "file", "2")

    assert [path.name for path in tmp_path.iterdir()] == ["file"]
