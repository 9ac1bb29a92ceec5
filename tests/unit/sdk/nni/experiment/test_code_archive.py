from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from nni.experiment.code_archive import code_files, pack_code
from nni.experiment.errors import ConfigError


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def names_of(folder: Path) -> list[str]:
    return [file.name for file in code_files(folder)]


def test_ignore_file_follows_the_rules_of_git(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "data/x.bin", "data/keep.txt", "deep/er/b.log", "__pycache__/a.pyc")
    (tmp_path / ".nniignore").write_text("# big\ndata/*\n!data/keep.txt\n*.log\n")

    assert names_of(tmp_path) == [".nniignore", "a.py", "data/keep.txt"]


def test_equal_folders_give_equal_archives(tmp_path: Path) -> None:
    make(tmp_path / "one", "b.py", "a.py")
    make(tmp_path / "two", "a.py", "b.py")
    (tmp_path / "two" / "a.py").touch()

    packed = [pack_code(tmp_path / name, io.BytesIO()) for name in ("one", "two")]

    assert packed[0] == packed[1]
    assert packed[0].file_count == 2


def test_archive_holds_contents_and_the_executable_bit(tmp_path: Path) -> None:
    make(tmp_path, "run.sh")
    (tmp_path / "run.sh").chmod(0o755)
    output = io.BytesIO()

    packed = pack_code(tmp_path, output)

    assert packed.size_bytes == len(output.getvalue())
    output.seek(0)
    with tarfile.open(fileobj=output) as archive:
        member = archive.getmember("run.sh")
        content = archive.extractfile(member)
        assert content is not None
        assert content.read() == b"run.sh"
        assert member.mode == 0o755


def test_too_many_files_are_refused_with_the_limit_and_the_way_out(tmp_path: Path) -> None:
    make(tmp_path, "a", "b", "c")

    with pytest.raises(ConfigError, match=r"at most 2 files.*nniignore"):
        code_files(tmp_path, file_limit=2)


def test_too_large_folder_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "abcd")

    with pytest.raises(ConfigError, match="trialCodeDirectory must have at most 0 MB"):
        code_files(tmp_path, size_limit_bytes=3)


def test_link_to_a_folder_above_ends(tmp_path: Path) -> None:
    make(tmp_path, "pkg/a.py")
    (tmp_path / "pkg" / "loop").symlink_to(tmp_path)

    assert names_of(tmp_path) == ["pkg/a.py"]


def test_link_to_a_file_is_packed_as_the_file(tmp_path: Path) -> None:
    make(tmp_path, "outside.txt", "code/a.py")
    (tmp_path / "code" / "link.txt").symlink_to(tmp_path / "outside.txt")

    assert names_of(tmp_path / "code") == ["a.py", "link.txt"]


def test_unprintable_name_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "a\nb")

    with pytest.raises(ConfigError, match="rename the file"):
        code_files(tmp_path)
