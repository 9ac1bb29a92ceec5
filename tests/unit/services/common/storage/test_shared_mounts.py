"""Mounts with real commands: programs on a PATH of the test stand where `mount` or `sudo` would."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.errors import FailedPreconditionError
from svc_common.storage.shared_mounts import MOUNT_MARK, MOUNT_VARIABLE, SharedMount
from svc_common.storage.shared_storage import LocalMount, SharedStorage, StorageKind

AZURE = SharedStorage(
    StorageKind.AZURE_BLOB,
    "/mnt/here",
    "there",
    LocalMount.USER,
    account="tuning",
    container="trials",
    account_key="s3cret",
    mark="abc",
)


class Machine:
    """A machine with a program `blobfuse2`, whose runs are written down."""

    def __init__(self, root: Path, script: str) -> None:
        self.place = root / "there"
        self.calls = root / "calls"
        self.private = root / "private"
        self.private.mkdir()
        programs = root / "bin"
        programs.mkdir()
        program = programs / "blobfuse2"
        program.write_text(f'#!/bin/sh\necho "$*" >>{self.calls}\n{script}\n', "utf-8")
        program.chmod(0o755)
        self.variables = {"PATH": f"{programs}:/usr/bin:/bin"}

    def mount(self, storage: SharedStorage = AZURE) -> SharedMount:
        return SharedMount(storage, "e1", self.place, self.private, self.variables)

    def write_mark(self, mark: str = "abc") -> None:
        folder = self.place / "nni" / "e1"
        folder.mkdir(parents=True)
        (folder / "storage-mark").write_text(mark, "ascii")

    def runs(self) -> list[str]:
        return self.calls.read_text("utf-8").splitlines() if self.calls.exists() else []


def test_storage_with_the_mark_is_used_as_it_is(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "exit 1")
    machine.write_mark()
    mount = machine.mount()

    mount.ensure()
    mount.unmount()

    assert not machine.runs()


def test_storage_is_mounted_once_and_unmounted(tmp_path: Path) -> None:
    place = tmp_path / "there"
    machine = Machine(
        tmp_path, f"mkdir -p {place}/nni/e1 && printf abc >{place}/nni/e1/storage-mark"
    )
    mount = machine.mount()

    mount.ensure()
    mount.ensure()
    mount.unmount()

    first, last = machine.runs()
    assert first.startswith(f"mount {place} --config-file=")
    assert last == f"unmount {place}"


def test_mount_that_another_agent_has_removed_is_made_again(tmp_path: Path) -> None:
    place = tmp_path / "there"
    machine = Machine(
        tmp_path, f"mkdir -p {place}/nni/e1 && printf abc >{place}/nni/e1/storage-mark"
    )
    machine.write_mark()
    mount = machine.mount()
    mount.ensure()
    shutil.rmtree(place)

    mount.ensure()

    assert [run.split()[0] for run in machine.runs()] == ["mount"]


def test_key_is_in_no_argument_and_in_no_file_afterwards(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "exit 1")

    with pytest.raises(FailedPreconditionError):
        machine.mount().ensure()

    left = [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    assert not any("s3cret" in text for text in left)


def test_another_storage_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "there"
    machine = Machine(
        tmp_path, f"mkdir -p {place}/nni/e1 && printf xyz >{place}/nni/e1/storage-mark"
    )

    with pytest.raises(FailedPreconditionError, match="not the storage that the manager sees"):
        machine.mount().ensure()


def test_folder_with_other_files_is_not_hidden_by_a_mount(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "exit 0")
    machine.place.mkdir()
    (machine.place / "mine").touch()

    with pytest.raises(FailedPreconditionError, match="must be empty"):
        machine.mount().ensure()

    assert not machine.runs()


def test_failed_command_is_shown_with_its_words(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "echo no such account >&2; exit 3")

    with pytest.raises(FailedPreconditionError, match=r"blobfuse2 mount .* no such account"):
        machine.mount().ensure()


def test_missing_program_is_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "exit 0")
    (tmp_path / "bin" / "blobfuse2").unlink()
    machine.variables["PATH"] = str(tmp_path / "bin")

    with pytest.raises(FailedPreconditionError, match="blobfuse2 is not installed"):
        machine.mount().ensure()


def test_storage_without_a_mark_has_to_be_a_mount(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "exit 0")

    with pytest.raises(FailedPreconditionError, match="is not mounted"):
        machine.mount(replace(AZURE, mark="")).ensure()


def test_daemon_of_a_mount_differs_from_those_of_trials(tmp_path: Path) -> None:
    place = tmp_path / "there"
    machine = Machine(
        tmp_path,
        f"mkdir -p {place}/nni/e1 && printf abc >{place}/nni/e1/storage-mark\n"
        f"printenv {MOUNT_VARIABLE} >{tmp_path}/marked",
    )

    machine.mount().ensure()

    assert (tmp_path / "marked").read_text("ascii") == f"{MOUNT_MARK}\n"
