"""Tests of the file of machines that have enrolled."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.joined.machines import DirectoryJoinedMachines, MachineFile
from svc_trial_runner.fleet.domain.invitations import JoinedMachine
from svc_trial_runner.fleet.ports import PlatformError

ONE = JoinedMachine("machine-1", 1, 2, "host-1", "id-1")
TWO = JoinedMachine("machine-2", 2, 1, "host-2", "id-1")


def test_new_pool_has_no_machines(tmp_path: Path) -> None:
    assert MachineFile(tmp_path / "joined").read() == []


def test_machines_are_read_by_another_process(tmp_path: Path) -> None:
    MachineFile(tmp_path / "joined").put(ONE)
    MachineFile(tmp_path / "joined").put(TWO)

    assert MachineFile(tmp_path / "joined").read() == [ONE, TWO]
    assert stat.S_IMODE((tmp_path / "joined/machines.json").stat().st_mode) == 0o600


def test_machine_that_enrols_again_has_one_record(tmp_path: Path) -> None:
    file = MachineFile(tmp_path / "joined")
    file.put(ONE)
    again = JoinedMachine("machine-1", 3, 1, "host-1", "id-2")

    file.put(again)

    assert file.read() == [again]


def test_ended_machines_stay_in_the_file(tmp_path: Path) -> None:
    file = MachineFile(tmp_path / "joined")
    file.put(ONE)
    file.put(TWO)

    file.end([1, 9])

    assert [(one.number, one.ended) for one in file.read()] == [(1, True), (2, False)]


@pytest.mark.parametrize("text", ['[{"machine": 1}]', "[" * 100_000])
def test_damaged_file_is_an_error_and_stays(tmp_path: Path, text: str) -> None:
    damaged = tmp_path / "joined/machines.json"
    damaged.parent.mkdir()
    damaged.write_text(text)
    file = MachineFile(tmp_path / "joined")

    # Read as empty, it would grant each use of an invitation once more.
    for call in (file.read, lambda: file.put(ONE)):
        with pytest.raises(PlatformError, match="is damaged") as caught:
            call()
        assert str(damaged) in caught.value.remedy
    assert damaged.read_text() == text


def test_folder_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(PlatformError, match=r"machines\.json"):
        MachineFile(tmp_path / "file" / "pool" / "joined").put(ONE)


async def test_pools_have_files_of_their_own(tmp_path: Path) -> None:
    machines = DirectoryJoinedMachines(tmp_path)

    await machines.put("a", ONE)

    assert await machines.of_pool("a") == [ONE]
    assert await machines.of_pool("b") == []
    assert MachineFile(tmp_path / "a" / "joined").read() == [ONE]


def test_changes_of_several_threads_do_not_get_lost(tmp_path: Path) -> None:
    for number in range(20):
        MachineFile(tmp_path / "joined").put(replace(ONE, machine=f"old-{number}", number=number))

    def change(number: int) -> None:
        file = MachineFile(tmp_path / "joined")
        file.put(replace(ONE, machine=f"new-{number}", number=100 + number))
        file.end([number])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(change, range(20)))

    ended = {one.number: one.ended for one in MachineFile(tmp_path / "joined").read()}
    assert ended == dict.fromkeys(range(20), True) | {100 + n: False for n in range(20)}


async def test_expired_invitations_are_read_by_another_process(tmp_path: Path) -> None:
    await DirectoryJoinedMachines(tmp_path).put_expired("a", {"id-2", "id-1"})
    machines = DirectoryJoinedMachines(tmp_path)

    assert await machines.expired("a") == {"id-1", "id-2"}
    assert await machines.expired("b") == set()


def test_record_of_expired_invitations_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "expired-invitations.json").write_text("1")

    with pytest.raises(PlatformError, match="cannot write"):
        MachineFile(tmp_path / "file" / "pool" / "joined").put_expired(["id-1"])
    with pytest.raises(PlatformError, match="is damaged"):
        MachineFile(tmp_path).expired()


@pytest.mark.parametrize("numbers", [[], [9], [1]])
def test_end_without_a_change_writes_nothing(tmp_path: Path, numbers: list[int]) -> None:
    file = MachineFile(tmp_path / "joined")
    file.put(ONE)
    file.put(TWO)
    file.end([1])
    before = (tmp_path / "joined/machines.json").stat()

    file.end(numbers)

    # A file is replaced when it is written.
    assert os.path.samestat((tmp_path / "joined/machines.json").stat(), before)


@pytest.mark.parametrize("text", ["{}", '""', "null", '"abc"', '{"a": 1}'])
def test_file_that_is_no_list_is_damaged(tmp_path: Path, text: str) -> None:
    for name in ("machines.json", "expired-invitations.json"):
        (tmp_path / name).write_text(text)
    file = MachineFile(tmp_path)

    with pytest.raises(PlatformError, match="the record of the machines that have joined is damag"):
        file.read()
    with pytest.raises(PlatformError, match="is damaged: it must be a list"):
        file.expired()


def test_file_that_cannot_be_read_is_an_error_with_its_name(tmp_path: Path) -> None:
    for name in ("machines.json", "expired-invitations.json"):
        (tmp_path / name).mkdir()
    file = MachineFile(tmp_path)

    with pytest.raises(PlatformError, match=r"cannot read .*machines\.json: Is a directory"):
        file.read()
    with pytest.raises(PlatformError, match=r"cannot read .*expired-invitations\.json: Is a dir"):
        file.expired()


def test_machine_that_has_ended_is_not_revived_by_the_end_of_another(tmp_path: Path) -> None:
    file = MachineFile(tmp_path / "joined")
    file.put(ONE)
    file.put(TWO)

    file.end([1])
    file.end([2])

    assert file.read() == [replace(ONE, ended=True), replace(TWO, ended=True)]


def test_expired_invitations_are_sorted_in_a_private_file(tmp_path: Path) -> None:
    MachineFile(tmp_path / "joined").put_expired(["b", "a"])

    path = tmp_path / "joined" / "expired-invitations.json"
    assert path.read_text() == '[\n "a",\n "b"\n]'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
