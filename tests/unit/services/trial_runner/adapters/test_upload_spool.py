from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc_trial_runner.adapters.upload_spool import DirectoryUploadSpool
from svc_trial_runner.ports import FinishedTrial

ONE, TWO = (FinishedTrial("e1", f"t{n}", n, f"/trials/t{n}") for n in (1, 2))


def test_unfinished_uploads_are_inherited(tmp_path: Path) -> None:
    spool = DirectoryUploadSpool(tmp_path / "spool")
    spool.add(ONE)
    spool.add(TWO)
    spool.done(ONE)

    assert DirectoryUploadSpool(tmp_path / "spool").inherited() == [TWO]


def test_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    DirectoryUploadSpool(tmp_path / "spool").add(ONE)

    assert (tmp_path / "spool").stat().st_mode & 0o777 == 0o700


def test_attempts_of_one_trial_are_two(tmp_path: Path) -> None:
    spool = DirectoryUploadSpool(tmp_path)
    again = FinishedTrial("e1", "t1", 2, "/trials/t1")
    spool.add(ONE)
    spool.add(again)
    spool.done(ONE)

    assert spool.inherited() == [again]


def test_entry_that_was_cut_off_is_removed(tmp_path: Path) -> None:
    spool = DirectoryUploadSpool(tmp_path)
    spool.add(ONE)
    (tmp_path / "torn.json").write_text('{"experiment": "e')

    assert spool.inherited() == [ONE]
    assert not (tmp_path / "torn.json").exists()


def test_empty_journal_recovers_nothing(tmp_path: Path) -> None:
    assert DirectoryUploadSpool(tmp_path / "none").inherited() == []


def test_disk_that_cannot_be_written_loses_only_the_memory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    spool = DirectoryUploadSpool(tmp_path / "file" / "spool")

    spool.add(ONE)
    spool.done(ONE)

    assert spool.inherited() == []


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b"[]",
        b"[" * 100_000,
        b"7",
        b'{"experiment": 1, "trial": "t", "attempt": 1, "directory": "/d"}',
        b'{"experiment": "../e", "trial": "t", "attempt": 1, "directory": "/d"}',
        b'{"experiment": "e", "trial": "t", "attempt": "1", "directory": "/d"}',
        b'{"experiment": "e", "trial": "t", "attempt": 1, "directory": null}',
    ],
)
def test_damaged_entry_is_set_aside(tmp_path: Path, content: bytes) -> None:
    spool = DirectoryUploadSpool(tmp_path)
    spool.add(ONE)
    (tmp_path / "bad.json").write_bytes(content)

    assert spool.inherited() == [ONE]
    assert not (tmp_path / "bad.json").exists()


@pytest.mark.parametrize("older", [ONE, TWO])
def test_oldest_upload_comes_first(tmp_path: Path, older: FinishedTrial) -> None:
    spool = DirectoryUploadSpool(tmp_path)
    for trial in (ONE, TWO):
        spool.add(trial)
        (file,) = tmp_path.glob(f"*-{trial.trial_id}-*")
        moment = 1 if trial == older else 2
        os.utime(file, ns=(moment, moment))

    assert spool.inherited()[0] == older
