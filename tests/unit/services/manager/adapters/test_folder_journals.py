import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_manager.adapters.folder_journals import FolderJournals
from tests.unit.services.manager.adapters.test_event_file import room


def folder(tmp_path: Path) -> Path:
    (tmp_path / "db").mkdir()
    (tmp_path / "log").mkdir()
    return tmp_path


async def test_a_journal_keeps_batches_and_lines(tmp_path: Path) -> None:
    journal = FolderJournals().open(str(folder(tmp_path)), debug=False)

    journal.record(5, b"batch")
    journal.add_line(1_700_000_000_000, "INFO", "NNIManager", "hello")
    journal.add_line(1_700_000_000_000, "DEBUG", "NNIManager", "hidden")
    journal.close()

    assert await FolderJournals().read(tmp_path) == [(5, b"batch")]
    text = (tmp_path / "log" / "nnimanager.log").read_text()
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] INFO \(NNIManager\) hello\n", text)


def test_debug_lines_are_written_in_debug_mode(tmp_path: Path) -> None:
    journal = FolderJournals().open(str(folder(tmp_path)), debug=True)

    journal.add_line(0, "DEBUG", "NNIManager", "shown")
    journal.close()

    assert "shown" in (tmp_path / "log" / "nnimanager.log").read_text()


def test_without_a_folder_nothing_is_kept_and_nothing_fails(tmp_path: Path) -> None:
    journal = FolderJournals().open(str(tmp_path / "missing"), debug=False)

    journal.record(5, b"batch")
    journal.flush()
    journal.close()

    assert journal.last_sequence == 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_does_not_end_the_experiment(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "db" / "events.log").mkdir()  # no file can be there

    journal = FolderJournals().open(str(tmp_path), debug=False)
    journal.record(5, b"batch")
    journal.flush()
    journal.close()

    assert journal.last_sequence == 0


async def test_reading_a_folder_without_a_log_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"events\.log"):
        await FolderJournals().read(tmp_path)


async def test_reading_another_file_is_a_clear_error(tmp_path: Path) -> None:
    (folder(tmp_path) / "db" / "events.log").write_bytes(b"something else altogether")

    with pytest.raises(InvalidArgumentError, match="experiment_directory"):
        await FolderJournals().read(tmp_path)


async def test_folder_is_written_again_when_there_is_room(tmp_path: Path) -> None:
    journal = FolderJournals().open(str(folder(tmp_path)), debug=False)
    journal.record(1, b"one")
    journal.flush()
    with capture_logs() as lines:
        with room((tmp_path / "db" / "events.log").stat().st_size + 5):
            for sequence in (2, 3):
                journal.record(sequence, b"late")
                journal.flush()
        journal.record(4, b"four")
        journal.flush()
        journal.close()

    expected = [(1, b"one"), (2, b"late"), (3, b"late"), (4, b"four")]
    assert await FolderJournals().read(tmp_path) == expected
    said = [line["event"] for line in lines]
    assert said == ["experiment folder cannot be written now", "experiment folder written again"]


def another_file(path: Path) -> None:
    path.write_bytes(b"something else")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def file_in_place_of_the_folder(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_bytes(b"no folder")


def no_folder(path: Path) -> None:
    path.parent.rmdir()


def nothing(_path: Path) -> None:
    """Leave the file missing."""


@pytest.mark.parametrize(
    "place", [another_file, Path.mkdir, pipe, link, file_in_place_of_the_folder, no_folder, nothing]
)
async def test_what_is_no_event_file_is_set_aside_and_a_new_one_is_written(
    tmp_path: Path, place: Callable[[Path], None]
) -> None:
    path = folder(tmp_path) / "db" / "events.log"
    place(path)
    before = {found.name for found in [*tmp_path.iterdir(), *tmp_path.glob("db/*")]}
    journals = FolderJournals()

    await journals.set_aside(tmp_path, "it is no log")
    journal = journals.open(str(tmp_path), debug=False)
    journal.record(5, b"batch")
    journal.close()

    assert await journals.read(tmp_path) == [(5, b"batch")]
    aside = [*tmp_path.glob("*.damaged-*"), *tmp_path.glob("db/*.damaged-*")]
    assert len(aside) == (place not in {no_folder, nothing})
    assert {found.name.partition(".damaged-")[0] for found in aside} <= before


async def test_nothing_is_made_where_there_is_no_experiment_folder(tmp_path: Path) -> None:
    with capture_logs() as lines:
        await FolderJournals().set_aside(tmp_path / "elsewhere", "it is missing")

    assert list(tmp_path.iterdir()) == []
    assert lines == []
