"""Unpacking of bundles on a worker."""

import io
import os
import random
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker_bundles import remove_unused, unpack
from svc_trial_runner.fleet.adapters.bundles.worker_folders import (
    PREPARATION,
    PROCESS,
    WorkerError,
    WorkerFolders,
    write_fields,
)
from tests.support.worker_shell import digest_of, packed

CONTENT = packed({"run.py": b"pass", "site/package/module.py": b"x = 1"})
DIGEST = digest_of(CONTENT)


@pytest.fixture
def folders(tmp_path: Path) -> WorkerFolders:
    return WorkerFolders(str(tmp_path / "nni"))


def member(name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        header = tarfile.TarInfo(name)
        header.type = kind
        header.linkname = "/etc/passwd"
        archive.addfile(header)
    return target.getvalue()


def test_bundle_is_unpacked_below_its_hash(folders: WorkerFolders) -> None:
    assert unpack(folders, DIGEST, io.BytesIO(CONTENT))

    assert (folders.bundle(DIGEST) / "site/package/module.py").read_bytes() == b"x = 1"
    assert [path.name for path in folders.bundles.iterdir()] == [DIGEST]


def test_bundle_that_is_there_is_not_read(folders: WorkerFolders) -> None:
    unpack(folders, DIGEST, io.BytesIO(CONTENT))

    assert not unpack(folders, DIGEST, io.BytesIO(b""))


def test_bundle_that_was_cut_leaves_nothing(folders: WorkerFolders) -> None:
    words = f"arrived cut or changed: {len(CONTENT) - 20} bytes"
    with pytest.raises(WorkerError, match=words) as caught:
        unpack(folders, DIGEST, io.BytesIO(CONTENT[:-20]))

    assert not caught.value.permanent
    assert list(folders.bundles.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        member("../outside"),
        member("/etc/nni"),
        member("site/../../outside"),
        member("link", tarfile.SYMTYPE),
        member("link", tarfile.LNKTYPE),
        member("pipe", tarfile.FIFOTYPE),
        member("device", tarfile.CHRTYPE),
        b"no archive",
    ],
    ids=["above", "root", "within", "link", "hard", "pipe", "device", "none"],
)
def test_bundle_with_other_members_than_files_inside_is_refused(
    folders: WorkerFolders, content: bytes
) -> None:
    with pytest.raises(WorkerError, match="cannot be unpacked"):
        unpack(folders, digest_of(content), io.BytesIO(content))

    assert list(folders.bundles.iterdir()) == []
    assert not (folders.base.parent / "outside").exists()


def test_two_agents_that_unpack_at_once_both_succeed(folders: WorkerFolders) -> None:
    barrier = threading.Barrier(4)
    results: list[bool] = []

    def run() -> None:
        barrier.wait()
        results.append(unpack(folders, DIGEST, io.BytesIO(CONTENT)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(results) == 4
    assert any(results)
    assert [path.name for path in folders.bundles.iterdir()] == [DIGEST]
    assert (folders.bundle(DIGEST) / "run.py").read_bytes() == b"pass"


def test_last_two_bundles_and_those_of_agents_stay(folders: WorkerFolders) -> None:
    folders.open()
    for age, digest in enumerate(("a", "b", "c", "d", "e")):
        folders.bundle(digest).mkdir()
        os.utime(folders.bundle(digest), (1000 - age, 1000 - age))
    for name, file, digest in (("runs", PROCESS, "d"), ("waits", PREPARATION, "e")):
        folders.agent(name).mkdir()
        write_fields(folders.agent(name) / file, {"bundle": digest})

    assert remove_unused(folders) == ["c"]
    assert sorted(path.name for path in folders.bundles.iterdir()) == ["a", "b", "d", "e"]


def test_abandoned_draft_is_removed_and_a_fresh_one_stays(folders: WorkerFolders) -> None:
    folders.open()
    for name, age in (("old", 7200), ("fresh", 0)):
        draft = folders.bundles / f".new-{name}"
        draft.mkdir()
        os.utime(draft, (time.time() - age,) * 2)

    remove_unused(folders)

    assert [path.name for path in folders.bundles.iterdir()] == [".new-fresh"]


def test_distribution_that_pip_cannot_install_is_named(folders: WorkerFolders) -> None:
    content = packed({"requirements.txt": b"./no-such-wheel-nni-9.9-py3-none-any.whl\n"})

    with pytest.raises(WorkerError, match="could be had neither by the fleet nor by pip") as caught:
        unpack(folders, digest_of(content), io.BytesIO(content))

    assert caught.value.code == "distribution_missing"
    assert "put wheels" in caught.value.remedy
    assert caught.value.permanent
    assert os.uname().nodename in caught.value.message
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert caught.value.remedy.startswith("put wheels of ./no-such-wheel-nni-9.9")
    assert f"for Python {python} into fleet/wheels" in caught.value.remedy
    assert list(folders.bundles.iterdir()) == []


def test_what_the_fleet_could_not_send_is_installed_by_pip_where_there_is_one(
    folders: WorkerFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pip")
    facts = "late_thing-1.0.dist-info"
    with zipfile.ZipFile(tmp_path / "late_thing-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("late_thing.py", "x = 1")
        wheel.writestr(
            f"{facts}/METADATA", "Metadata-Version: 2.1\nName: late-thing\nVersion: 1.0\n"
        )
        wheel.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{facts}/RECORD", "late_thing.py,,\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    content = packed({"requirements.txt": b"late-thing==1.0\n", "site/other.py": b""})

    unpack(folders, digest_of(content), io.BytesIO(content))

    assert (folders.bundle(digest_of(content)) / "site" / "late_thing.py").read_text() == "x = 1"


def test_files_are_private_and_those_that_were_executable_stay_so(folders: WorkerFolders) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, mode in (("run", 0o755), ("data", 0o644)):
            header = tarfile.TarInfo(name)
            header.mode = mode
            archive.addfile(header, io.BytesIO())
        for _ in range(2):
            header = tarfile.TarInfo("empty")
            header.type = tarfile.DIRTYPE
            archive.addfile(header)
    content = target.getvalue()

    unpack(folders, digest_of(content), io.BytesIO(content))

    place = folders.bundle(digest_of(content))
    modes = {one.name: one.stat().st_mode & 0o777 for one in place.iterdir() if one.is_file()}
    assert modes == {"run": 0o700, "data": 0o600}
    assert (place / "empty").is_dir()


def test_file_that_a_bundle_has_twice_is_refused(folders: WorkerFolders) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("a"), io.BytesIO())
    content = target.getvalue()

    with pytest.raises(WorkerError, match="cannot be unpacked"):
        unpack(folders, digest_of(content), io.BytesIO(content))


def test_digest_of_a_damaged_bundle_is_shown_by_its_first_12_digits(
    folders: WorkerFolders,
) -> None:
    with pytest.raises(WorkerError, match=f"are not those of {DIGEST[:12]}$"):
        unpack(folders, DIGEST, io.BytesIO(b"cut"))


def test_bundle_that_is_used_again_is_the_last_used_one(folders: WorkerFolders) -> None:
    unpack(folders, DIGEST, io.BytesIO(CONTENT))
    os.utime(folders.bundle(DIGEST), (1000, 1000))

    unpack(folders, DIGEST, io.BytesIO(b""))

    assert folders.bundle(DIGEST).stat().st_mtime > 1000


class RacingSource(io.BytesIO):
    """Bundle at whose end another process has used the place of the unpacked one."""

    def __init__(self, content: bytes, place: Path, *, as_folder: bool) -> None:
        super().__init__(content)
        self._place = place
        self._as_folder = as_folder

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if not data:
            if self._as_folder:
                self._place.mkdir(exist_ok=True)
                (self._place / "run.py").write_bytes(b"of the other process")
            else:
                self._place.touch()
        return data


def test_bundle_of_a_faster_process_stays(folders: WorkerFolders) -> None:
    place = folders.bundle(DIGEST)

    assert not unpack(folders, DIGEST, RacingSource(CONTENT, place, as_folder=True))

    assert (place / "run.py").read_bytes() == b"of the other process"
    assert list(folders.bundles.iterdir()) == [place]


def test_file_in_the_place_of_a_bundle_is_an_error(folders: WorkerFolders) -> None:
    place = folders.bundle(DIGEST)

    with pytest.raises(WorkerError, match=DIGEST) as caught:
        unpack(folders, DIGEST, RacingSource(CONTENT, place, as_folder=False))

    assert caught.value.code == "file_error"
    assert list(folders.bundles.iterdir()) == [place]


@pytest.mark.parametrize("name", ["./a", "a/./b", "a//b", "a/.."])
def test_bundle_with_an_ambiguous_name_is_refused(folders: WorkerFolders, name: str) -> None:
    content = member(name)

    with pytest.raises(WorkerError, match=r"is refused$") as caught:
        unpack(folders, digest_of(content), io.BytesIO(content))

    assert (caught.value.code, caught.value.permanent) == ("bundle_damaged", True)
    assert list(folders.bundles.iterdir()) == []


def test_refused_name_is_shown_by_its_first_200_characters(folders: WorkerFolders) -> None:
    content = packed({"../" + "a" * 300: b""})

    with pytest.raises(WorkerError, match=f"'../{'a' * 197}' is refused"):
        unpack(folders, digest_of(content), io.BytesIO(content))


def test_bundle_of_several_pieces_is_unpacked_whole(folders: WorkerFolders) -> None:
    data = random.Random(1).randbytes(3 * 1024 * 1024 // 2)
    content = packed({"site/data.bin": data})

    assert unpack(folders, digest_of(content), io.BytesIO(content))

    assert (folders.bundle(digest_of(content)) / "site" / "data.bin").read_bytes() == data


def test_old_bundles_are_removed_when_another_one_is_unpacked(folders: WorkerFolders) -> None:
    folders.open()
    for age, digest in enumerate(("a", "b", "c")):
        folders.bundle(digest).mkdir()
        os.utime(folders.bundle(digest), (1000 - age, 1000 - age))

    unpack(folders, DIGEST, io.BytesIO(CONTENT))

    assert sorted(path.name for path in folders.bundles.iterdir()) == sorted([DIGEST, "a"])


@pytest.mark.parametrize(("age_s", "stays"), [(3000, True), (3700, False)])
def test_draft_is_abandoned_after_an_hour(
    folders: WorkerFolders, age_s: float, *, stays: bool
) -> None:
    folders.open()
    draft = folders.bundles / ".new-draft"
    draft.mkdir()
    os.utime(draft, (time.time() - age_s,) * 2)

    assert remove_unused(folders) == []

    assert draft.exists() is stays


def test_no_bundle_without_an_agent_stays_if_none_is_kept(folders: WorkerFolders) -> None:
    folders.open()
    for digest in ("a", "b"):
        folders.bundle(digest).mkdir()
    folders.agent("runs").mkdir()
    write_fields(folders.agent("runs") / PROCESS, {"bundle": "b"})

    assert remove_unused(folders, kept=0) == ["a"]
    assert [path.name for path in folders.bundles.iterdir()] == ["b"]
