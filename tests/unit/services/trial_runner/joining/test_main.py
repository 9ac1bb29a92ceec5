"""Tests of joining a pool, against a real TLS front."""

import argparse
import asyncio
import ctypes
import getpass
import io
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError
from svc_trial_runner.agent_settings import ConnectionKind
from svc_trial_runner.enrolment import EnrolmentWord
from svc_trial_runner.joining.__main__ import join_pool, main
from tests.support.enrolment_stage import enrolment_stage

pytest.importorskip("cryptography")

SET_DUMPABLE = 4
"""Option of `prctl`."""


@pytest.fixture
def word_file(tmp_path: Path) -> Iterator[Path]:
    """File with the word of an invitation; the process can be inspected again afterwards."""
    file = tmp_path / "word"
    file.write_text(EnrolmentWord.new("0" * 64).text())
    yield file
    ctypes.CDLL(None).prctl(SET_DUMPABLE, 1, 0, 0, 0)


@pytest.mark.parametrize(
    ("address", "gpu_indices", "code", "words"),
    [
        ("http://127.0.0.1:1", "", 2, "https://"),
        ("https://127.0.0.1:1", "all", 2, "--gpu-indices"),
        ("https://127.0.0.1:1", "0", 1, "127.0.0.1:1"),
    ],
)
def test_machine_that_cannot_join_has_one_line_and_an_exit_code(
    address: str,
    gpu_indices: str,
    code: int,
    words: str,
    word_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = ["--pool", "desks", "--word-file", str(word_file), "--gpu-indices", gpu_indices]
    monkeypatch.setattr(sys, "argv", ["join", address, *chosen])

    assert main() == code

    error = capsys.readouterr().err
    assert error.startswith("ERROR: ")
    assert words in error
    assert error.count("\n") == 1


def options(address: str, folder: Path, gpu_indices: str = "") -> argparse.Namespace:
    return argparse.Namespace(
        address=f"https://{address}",
        pool="desks",
        slots=2,
        gpu_indices=gpu_indices,
        folder=str(folder),
    )


async def test_joined_machine_has_the_settings_of_an_agent_behind_the_front(
    tmp_path: Path,
) -> None:
    async with enrolment_stage(tmp_path, "unknown") as stage:
        word = await stage.invite()
        chosen = options(stage.endpoint.address, tmp_path / "machine", "0,2")

        settings = await asyncio.to_thread(join_pool, chosen, word)

        assert settings.name.endswith("-desks-1")
        assert (settings.platform, settings.slots, settings.gpu_indices) == ("joined", 2, (0, 2))
        assert settings.connection.kind is ConnectionKind.TLS
        assert settings.connection.bus == f"tls://{stage.endpoint.address}"
        assert settings.connection.authority == stage.endpoint.authority
        assert Path(settings.home).is_relative_to(tmp_path / "machine")
        assert settings.removes_home
        files = [path for path in (tmp_path / "machine").rglob("*") if path.is_file()]
        assert not any(word.secret in path.read_text() for path in files)


async def test_machine_that_joins_again_is_known_by_its_folder(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path, "unknown") as stage:
        word = await stage.invite(use_limit=1)
        chosen = options(stage.endpoint.address, tmp_path / "machine")
        await asyncio.to_thread(join_pool, chosen, word)

        again = await asyncio.to_thread(join_pool, chosen, word)

        assert again.name.endswith("-desks-2")


async def test_wrong_gpu_indices_are_refused(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path, "unknown") as stage:
        word = await stage.invite()
        chosen = options(stage.endpoint.address, tmp_path / "machine", "all")

        with pytest.raises(InvalidArgumentError, match="--gpu-indices"):
            await asyncio.to_thread(join_pool, chosen, word)


def joins(monkeypatch: pytest.MonkeyPatch, *options_: str) -> int:
    """Let a machine join a pool at an address where nothing listens; return the exit code."""
    monkeypatch.setattr(sys, "argv", ["join", "https://127.0.0.1:1", "--pool", "desks", *options_])
    return main()


def test_word_is_the_first_line_of_the_standard_input(
    word_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{word_file.read_text()}\nmore\n"))

    assert joins(monkeypatch) == 1

    assert "cannot reach the front" in capsys.readouterr().err


class Terminal(io.StringIO):
    """Standard input at which a person types."""

    def isatty(self) -> bool:
        return True


def test_word_that_a_person_types_is_not_shown(
    word_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: word_file.read_text())

    assert joins(monkeypatch, "--word-file", "-") == 1

    assert "cannot reach the front" in capsys.readouterr().err


def test_missing_input_of_a_person_is_an_error(
    word_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def end(_prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", end)

    assert joins(monkeypatch) == 2

    assert capsys.readouterr().err.startswith("ERROR: ")


@pytest.mark.parametrize("content", [None, b"\xff"], ids=["missing", "no text"])
def test_word_file_that_cannot_be_read_is_named(
    word_file: Path,
    content: bytes | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if content is None:
        word_file.unlink()
    else:
        word_file.write_bytes(content)

    assert joins(monkeypatch, "--word-file", str(word_file)) == 2

    assert "--word-file must be a readable file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "indices"), [("", None), ("3", (3,)), ("0, 2", (0, 2)), ("0,0", (0, 0))]
)
async def test_gpu_indices_are_numbers_with_commas_or_none(
    tmp_path: Path, text: str, indices: tuple[int, ...] | None
) -> None:
    async with enrolment_stage(tmp_path, "unknown") as stage:
        word = await stage.invite()
        chosen = options(stage.endpoint.address, tmp_path / "machine", text)

        settings = await asyncio.to_thread(join_pool, chosen, word)

        assert settings.gpu_indices == indices


@pytest.mark.parametrize("text", ["-1", "0,", "\u0663", "1.5"])
async def test_wrong_gpu_indices_use_no_invitation(tmp_path: Path, text: str) -> None:
    async with enrolment_stage(tmp_path, "unknown") as stage:
        word = await stage.invite()
        chosen = options(stage.endpoint.address, tmp_path / "machine", text)

        with pytest.raises(InvalidArgumentError, match="numbers separated by commas"):
            await asyncio.to_thread(join_pool, chosen, word)

        assert stage.pool.enrolled == []


async def test_machine_enrols_with_its_slots_and_gets_its_credentials(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path, "unknown") as stage:
        word = await stage.invite()
        chosen = options(stage.endpoint.address, tmp_path / "machine")

        settings = await asyncio.to_thread(join_pool, chosen, word)

        assert stage.pool.enrolled == [(2, platform.node() or "localhost", None)]
        assert (settings.bus_user, settings.manager_token) == (settings.name, "token-1")
        assert settings.bus_password
        assert settings.connection.manager == stage.endpoint.address
        assert settings.home.endswith(f"/agents/{settings.name}")
