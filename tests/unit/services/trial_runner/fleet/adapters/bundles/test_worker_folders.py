"""Folders of a worker: names, private files, errors with remedies."""

import errno
import os
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker_folders import (
    WorkerError,
    WorkerFolders,
    checked_word,
    file_error,
    file_errors,
    make_private,
    read_fields,
    remove_folder,
    write_fields,
    write_private,
)


@pytest.mark.parametrize("name", ["nni-abcdefgh-exp-a1-0", "a", "a.b_c"])
def test_names_of_agents_are_names_of_folders(name: str) -> None:
    assert checked_word(name) == name


@pytest.mark.parametrize("name", ["", "..", ".", ".new-x", "a/b", "a b", "/", "a\n"])
def test_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(WorkerError, match="cannot be the name of a folder"):
        checked_word(name)


def test_tilde_is_the_home() -> None:
    assert WorkerFolders("~/.nni").base == Path.home() / ".nni"


def test_folders_are_private(tmp_path: Path) -> None:
    folders = WorkerFolders(str(tmp_path / "nni"))

    folders.open()

    assert folders.base.stat().st_mode & 0o777 == 0o700
    assert folders.names() == []


def test_folder_that_others_may_write_to_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    make_private(tmp_path)

    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_file_is_private_and_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    write_private(path, b"old")

    write_private(path, b"new")

    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", [b'{"pid"', b"[" * 100_000])
def test_damaged_file_counts_as_missing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "process.json"
    write_fields(path, {"pid": 1})

    assert read_fields(path) == {"pid": 1}
    path.write_bytes(content)
    assert read_fields(path) == {}


def test_folder_below_a_closed_one_is_removed(tmp_path: Path) -> None:
    inner = tmp_path / "agent" / "closed"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    inner.chmod(0)

    remove_folder(tmp_path / "agent")

    assert list(tmp_path.iterdir()) == []


def test_folder_that_was_removed_already_is_no_error(tmp_path: Path) -> None:
    remove_folder(tmp_path / "agent")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "disk_full"),
        (errno.EDQUOT, "disk_full"),
        (errno.EROFS, "not_writable"),
        (errno.EACCES, "not_writable"),
    ],
)
def test_errors_of_the_disk_have_a_remedy(number: int, code: str) -> None:
    error = file_error(OSError(number, os.strerror(number), "/data/nni/file"), Path("/data/nni"))

    assert error.code == code
    assert error.permanent
    assert "/data/nni/file" in error.message
    assert "/data/nni" in error.remedy


def test_other_error_may_be_gone_at_another_try() -> None:
    error = file_error(OSError(errno.EIO, "Input/output error"), Path("/data/nni"))

    assert (error.code, error.permanent) == ("file_error", False)


def test_long_name_is_shown_by_its_first_80_characters() -> None:
    with pytest.raises(WorkerError, match=f"^'{'/' * 80}' cannot be") as caught:
        checked_word("/" * 100)

    assert (caught.value.code, caught.value.permanent) == ("bad_name", True)


def test_link_to_a_folder_is_removed_alone(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "file").touch()

    remove_folder(tmp_path / "link")
    remove_folder(tmp_path / "file")

    assert [one.name for one in tmp_path.iterdir()] == ["target"]


def test_names_are_those_of_folders(tmp_path: Path) -> None:
    folders = WorkerFolders(str(tmp_path))
    folders.open()
    folders.open()
    folders.agent("b").mkdir()
    folders.agent("a").mkdir()
    folders.agent("file").touch()
    folders.agent("link").symlink_to(folders.agent("a"))

    assert folders.names() == ["a", "b"]
    assert WorkerFolders(str(tmp_path / "none")).names() == []


def test_file_that_is_no_mapping_counts_as_missing(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1]")

    assert read_fields(tmp_path / "a.json") == {}


def test_error_without_a_path_names_the_folder() -> None:
    error = file_error(OSError(errno.EIO, "broken"), Path("/data/nni"))

    assert "/data/nni" in error.message
    assert error.message.endswith(": broken")


def test_folder_that_only_a_group_may_write_to_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o775)

    make_private(tmp_path)

    assert tmp_path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("number", "code"), [(errno.EFBIG, "disk_full"), (errno.EPERM, "not_writable")]
)
def test_error_of_a_rename_names_the_target(number: int, code: str) -> None:
    error = file_error(OSError(number, "refused", "/draft", None, "/target"), Path("/data/nni"))

    assert error.code == code
    assert "/target" in error.message
    assert "/draft" not in error.message
    assert os.uname().nodename in error.remedy


def test_error_without_a_number_is_shown_by_its_words() -> None:
    assert file_error(OSError("odd words"), Path("/data/nni")).message.endswith(": odd words")


def test_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = Path("/")
    if os.geteuid() == 0:
        folder = tmp_path / "other"
        folder.mkdir()
        os.chown(folder, 12345, -1)

    with pytest.raises(PermissionError, match="it belongs to another user"):
        make_private(folder)


def test_folders_above_a_private_one_are_made(tmp_path: Path) -> None:
    make_private(tmp_path / "a" / "b")
    make_private(tmp_path / "a" / "b")

    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_mode_of_a_folder_that_others_may_only_read_stays(tmp_path: Path) -> None:
    tmp_path.chmod(0o1755)

    make_private(tmp_path)

    assert tmp_path.stat().st_mode & 0o7777 == 0o1755


def test_folder_that_only_others_may_write_to_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o1702)

    make_private(tmp_path)

    assert tmp_path.stat().st_mode & 0o7777 == 0o1700


def test_file_that_cannot_be_replaced_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "settings.json").mkdir()

    with pytest.raises(OSError, match=r"settings\.json"):
        write_private(tmp_path / "settings.json", b"new")

    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]


def test_error_of_a_file_is_converted(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="missing") as caught, file_errors(tmp_path):
        (tmp_path / "missing").read_bytes()

    assert isinstance(caught.value.__cause__, FileNotFoundError)


@pytest.mark.parametrize("name", ["a-", "a_", "-a", "1", "a."])
def test_one_letter_or_digit_is_enough_for_the_name_of_a_folder(name: str) -> None:
    assert checked_word(name) == name


@pytest.mark.parametrize("name", ["é", "_", "-", "²"])
def test_name_of_a_folder_without_an_ascii_letter_or_digit_is_refused(name: str) -> None:
    with pytest.raises(WorkerError, match="cannot be the name of a folder"):
        checked_word(name)


def test_bundles_and_agents_have_folders_of_their_own(tmp_path: Path) -> None:
    folders = WorkerFolders(str(tmp_path))

    assert folders.bundle("0a1b") == tmp_path / "bundles/0a1b"
    assert folders.agent("one") == tmp_path / "agents/one"
