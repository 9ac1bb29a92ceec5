"""The account of user code: as root with real users, else the refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import svc_common
from svc_common.code_user import SAME_USER, CodeUser, parse_ids
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from tests.support.public_packages import public_packages

SERVICE, CODE = 65532, 65533
USER = CodeUser(CODE, CODE)
PUBLIC_PYTHON = Path("/usr/bin/python3")
"""Interpreter that another user can execute; that of the tests may be in a private folder."""
as_root = pytest.mark.skipif(
    os.geteuid() != 0 or not PUBLIC_PYTHON.exists(), reason="only root can become another user"
)
SERVICE_CODE = """
import json, os, subprocess, sys
from svc_common import environment, inspection
from svc_common.code_user import read_code_user
inspection.forbid_inspection()
environment.load_secrets()
user = read_code_user()
own = subprocess.run(["grep", "^Cap", "/proc/self/status"], capture_output=True, text=True).stdout
done = subprocess.run(["bash", "-c", "id -u; id -g; id -G; umask; grep ^Cap /proc/self/status"],
                      capture_output=True, text=True, **user.process_options)
child = subprocess.Popen(["sleep", "100"], **user.process_options)
child.kill()
print(json.dumps({"ids": [os.getresuid(), os.getresgid(), os.getgroups()], "own": own,
                  "child": done.stdout.split("\\n"), "killed": child.wait(),
                  "environment": sorted(environment.for_user_code())}))
"""


@pytest.fixture(scope="module")
def packages() -> Iterator[Path]:
    """Return a folder with `svc_common` that another user can read."""
    with public_packages(Path(svc_common.__file__).parent) as folder:
        yield folder


def started(folder: Path, packages: Path, *options: str) -> dict[str, Any]:
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "svc_common.entry_point", "--user", f"{SERVICE}"),
            *(*options, str(PUBLIC_PYTHON), "-c", SERVICE_CODE),
        ],
        env={
            "PYTHONPATH": str(packages),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "NNI_HOME": str(folder),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@as_root
def test_service_keeps_three_rights_and_its_children_none(tmp_path: Path, packages: Path) -> None:
    found = started(tmp_path, packages, "--code-user", f"{CODE}")

    assert found["ids"] == [[SERVICE] * 3, [SERVICE] * 3, [CODE]]
    uid, gid, groups, umask, *capabilities = found["child"]
    assert (uid, gid, groups, umask) == (str(CODE), str(CODE), str(CODE), "0002")
    for text in (found["own"].split("\n"), capabilities):
        sets = dict(line.split() for line in text if line)
        assert {int(sets[f"Cap{name}:"], 16) for name in ("Inh", "Prm", "Eff", "Amb")} == {0}
    assert found["killed"] == -9
    assert not {"NNI_CODE_USER", "GRPC_ENABLE_FORK_SUPPORT"} & set(found["environment"])


@as_root
def test_without_another_user_no_right_is_kept(tmp_path: Path, packages: Path) -> None:
    found = started(tmp_path, packages)

    assert found["ids"] == [[SERVICE] * 3, [SERVICE] * 3, []]
    assert found["child"][0] == str(SERVICE)


@as_root
def test_folders_of_the_container_that_all_may_write_to_are_closed(
    tmp_path: Path, packages: Path
) -> None:
    home = tmp_path / "state"
    home.mkdir()
    home.chmod(0o2777)
    os.chown(home, 0, SERVICE)

    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "svc_common.entry_point", "--user", f"{SERVICE}"),
            *("--code-user", f"{CODE}", "true"),
        ],
        env={"PYTHONPATH": str(packages), "PATH": os.environ["PATH"], "NNI_HOME": str(home)},
        check=False,
    )

    assert done.returncode == 0
    assert home.stat().st_mode & 0o7777 == 0o2775


@as_root
def test_acting_makes_and_opens_files_of_user_code(tmp_path: Path) -> None:
    # The parents of a temporary folder may be closed to others.
    descriptor = os.open(tmp_path, os.O_RDONLY)
    tmp_path.chmod(0o777)

    with USER.acting():
        os.close(os.open("own", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=descriptor))
        with USER.acting():
            os.mkdir("folder", dir_fd=descriptor)
        own = os.stat("own", dir_fd=descriptor).st_uid
    os.close(descriptor)
    (tmp_path / "ours").touch()

    assert own == CODE
    assert (tmp_path / "folder").stat().st_gid == CODE
    assert (tmp_path / "ours").stat().st_uid == 0


@as_root
def test_shared_folder_has_the_group_of_user_code(tmp_path: Path) -> None:
    shared, sticky = tmp_path / "shared", tmp_path / "sticky"
    for folder in (shared, sticky):
        folder.mkdir()

    USER.share(shared)
    USER.share(sticky, sticky=True)
    USER.share(sticky, sticky=True)

    assert (shared.stat().st_gid, shared.stat().st_mode & 0o7777) == (CODE, 0o2775)
    assert (sticky.stat().st_gid, sticky.stat().st_mode & 0o7777) == (CODE, 0o3775)
    link = tmp_path / "link"
    link.symlink_to("shared")
    with pytest.raises(OSError, match="link"):
        USER.share(link)


@as_root
def test_closed_output_is_opened_to_services_and_nothing_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "trial"
    (place / "closed" / "deep").mkdir(parents=True)
    (place / "closed" / "deep" / "file").touch()
    (place / "service").touch(mode=0o600)
    outside = tmp_path / "outside"
    outside.touch(mode=0o600)
    (place / "link").symlink_to(outside)
    for path in (place, *place.rglob("*"), outside):
        if path.name not in {"service", "link"}:
            os.chown(path, CODE, CODE)
    for path in (place / "closed" / "deep" / "file", place / "closed" / "deep", place / "closed"):
        path.chmod(0o1000 if path.is_dir() else 0)
    # The parents of a temporary folder may be closed to others.
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)

    USER.open_to_services("trial")
    USER.open_to_services("missing")

    assert (place / "closed").stat().st_mode & 0o7777 == 0o770
    assert (place / "closed" / "deep").stat().st_mode & 0o7777 == 0o770
    assert (place / "closed" / "deep" / "file").stat().st_mode & 0o7777 == 0o660
    assert (place / "service").stat().st_mode & 0o7777 == 0o600
    assert outside.stat().st_mode & 0o7777 == 0o600


def test_same_user_changes_nothing(tmp_path: Path) -> None:
    before = tmp_path.stat()

    with SAME_USER.acting():
        (tmp_path / "file").touch(mode=0o600)
    SAME_USER.share(tmp_path)
    SAME_USER.open_to_services(tmp_path)
    SAME_USER.admit_to_socket(tmp_path, str(tmp_path / "no socket"))

    assert SAME_USER.process_options == {}
    assert (tmp_path.stat().st_mode, tmp_path.stat().st_gid) == (before.st_mode, before.st_gid)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() == 0, reason="root may become another user")
def test_process_that_may_not_change_users_is_named() -> None:
    with pytest.raises(FailedPreconditionError, match="CAP_SETUID"), USER.acting():
        pass


@pytest.mark.parametrize(("text", "ids"), [("7", (7, 7)), ("7:8", (7, 8))])
def test_ids_are_numbers(text: str, ids: tuple[int, int]) -> None:
    assert parse_ids("--user", text) == ids


@pytest.mark.parametrize("text", ["", "root", "7:x", "-1", ":8"])
def test_other_ids_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="--user must be UID"):
        parse_ids("--user", text)
