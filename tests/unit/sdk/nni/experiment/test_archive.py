"""Archives: what is written comes back; what a stranger made is refused before it does harm."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nni.experiment.archive import MANIFEST, PIECE_BYTES, Archive, ArchiveWriter, is_safe
from nni.experiment.errors import ConfigError

FILES = {
    "events.log": b"log" * 1000,
    "folder/trials/a/stdout": b"",
    "code/trial.py": b"print(1)\n",
    "values/" + "a" * 64: b"v" * (PIECE_BYTES * 2 + 5),
    "folder/exact": b"e" * PIECE_BYTES,
}


def write(path: Path, files: dict[str, bytes] | None = None) -> Path:
    with path.open("wb") as file, ArchiveWriter(file) as writer:
        for name, content in (FILES if files is None else files).items():
            with writer.member(name, executable=name.endswith(".py")) as member:
                for start in range(0, len(content), 1000):
                    member.write(content[start : start + 1000])
        writer.finish(
            experiment_id="abcd1234",
            nni_version="1.0",
            saved_at="2026-11-20T00:00:00Z",
            search_space={"x": 1},
        )
    return path


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    with Archive(write(tmp_path / "a.zip")) as archive:
        archive.verify()

        found = {
            name: b"".join(data for data, _ in archive.pieces(name))
            for name in archive.manifest.files
        }

        assert found == FILES
        assert archive.manifest.experiment_id == "abcd1234"
        assert archive.manifest.search_space == {"x": 1}
        assert list(archive.manifest.code) == ["trial.py"]
        assert archive.manifest.code["trial.py"].executable


def test_every_file_has_one_last_piece_and_none_is_large(tmp_path: Path) -> None:
    with Archive(write(tmp_path / "a.zip")) as archive:
        for name in FILES:
            pieces = list(archive.pieces(name))
            assert [last for _, last in pieces] == [False] * (len(pieces) - 1) + [True]
            assert all(len(data) <= PIECE_BYTES for data, _ in pieces)


def rewritten(path: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None]) -> Path:
    """Change members and manifest of an archive with a ZIP tool."""
    with zipfile.ZipFile(path) as source:
        members = {name: source.read(name) for name in source.namelist()}
    manifest = json.loads(members.pop(MANIFEST))
    change(members, manifest)
    with zipfile.ZipFile(path, "w") as target:
        for name, content in members.items():
            target.writestr(name, content)
        target.writestr(MANIFEST, json.dumps(manifest))
    return path


def other_content(members: dict[str, bytes], _: dict[str, Any]) -> None:
    members["code/trial.py"] = b"print(2)\n"


def longer(members: dict[str, bytes], _: dict[str, Any]) -> None:
    members["code/trial.py"] += b"more"


def shorter(members: dict[str, bytes], _: dict[str, Any]) -> None:
    members["events.log"] = members["events.log"][:-1]


@pytest.mark.parametrize("change", [other_content, longer, shorter])
def test_changed_content_is_found(
    tmp_path: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None]
) -> None:
    path = rewritten(write(tmp_path / "a.zip"), change)

    with Archive(path) as archive, pytest.raises(ConfigError, match="is damaged"):
        archive.verify()


def extra(members: dict[str, bytes], _: dict[str, Any]) -> None:
    members["code/unknown.py"] = b""


def missing(members: dict[str, bytes], _: dict[str, Any]) -> None:
    del members["events.log"]


def leading_out(members: dict[str, bytes], manifest: dict[str, Any]) -> None:
    members["code/../../evil"] = members.pop("code/trial.py")
    manifest["files"]["code/../../evil"] = manifest["files"].pop("code/trial.py")


def of_the_future(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest |= {"form": 99, "nniVersion": "9.9"}


def huge(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["files"]["events.log"]["size"] = 2**50


def negative(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["files"]["events.log"]["size"] = -1


def no_hash(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["files"]["events.log"]["sha256"] = "x"


def no_files(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    del manifest["files"]


def odd_files(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["files"] = [1]


def odd_id(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["experimentId"] = "../up"


def number_as_id(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["experimentId"] = 1


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (extra, "does not hold what its manifest says"),
        (missing, "does not hold what its manifest says"),
        (leading_out, "must not lead out"),
        (of_the_future, r"later version of NNI \(9\.9\)"),
        (huge, "at most 16 GiB"),
        (negative, "malformed"),
        (no_hash, "malformed"),
        (no_files, "cannot be read"),
        (odd_files, "cannot be read"),
        (odd_id, "must be an id"),
        (number_as_id, "cannot be read"),
    ],
)
def test_what_a_stranger_made_is_refused(
    tmp_path: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None], match: str
) -> None:
    path = rewritten(write(tmp_path / "a.zip"), change)

    with pytest.raises(ConfigError, match=match):
        Archive(path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip")
    with zipfile.ZipFile(path) as source:
        members = {name: source.read(name) for name in source.namelist()}
    with zipfile.ZipFile(path, "w") as target:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            if name == "code/trial.py":
                info.external_attr = 0o120777 << 16
            target.writestr(info, content)

    with pytest.raises(ConfigError, match="link"):
        Archive(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip")
    with zipfile.ZipFile(path, "a") as target:
        target.writestr("code/trial.py", b"other")

    with pytest.raises(ConfigError, match="comes twice"):
        Archive(path)


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x05\x06" + b"\x00" * 18])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(content)

    with pytest.raises(ConfigError, match="nnictl experiment save"):
        Archive(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        Archive(tmp_path / "a.zip")


@pytest.mark.parametrize("count", [30, 100, 400])
def test_a_damaged_archive_never_gives_wrong_content(tmp_path: Path, count: int) -> None:
    path = write(tmp_path / "a.zip")
    data = bytearray(path.read_bytes())
    data[count * len(data) // 431] ^= 0xFF
    path.write_bytes(bytes(data))

    try:
        with Archive(path) as archive:
            archive.verify()
            found = {
                name: b"".join(data for data, _ in archive.pieces(name))
                for name in archive.manifest.files
            }
    except ConfigError:
        return
    assert found == FILES  # the byte meant nothing


@pytest.mark.parametrize("name", ["a", "a/b", "a/.b/c..d", "ä/b c"])
def test_plain_names_are_safe(name: str) -> None:
    assert is_safe(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "./a",
        "a/..",
        "../a",
        "a\\b",
        "C:/a",
        "C:",
        "a\nb",
        "a\0b",
        "x" * 1001,
    ],
)
def test_names_that_lead_elsewhere_are_not(name: str) -> None:
    assert not is_safe(name)
