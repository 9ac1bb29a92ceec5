"""Ports in files."""

from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.stored_port import read_port, write_port
from svc_trial_runner.fleet.ports import PlatformError


def test_written_port_is_read_again(tmp_path: Path) -> None:
    write_port(tmp_path / "port", 8081)

    assert read_port(tmp_path / "port") == 8081


@pytest.mark.parametrize("content", [b"", b"x", b"0", b"-1", b"65536", b"\xff"])
def test_damaged_file_has_no_port(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "port").write_bytes(content)

    assert read_port(tmp_path / "port") == 0


def test_missing_file_has_no_port(tmp_path: Path) -> None:
    assert read_port(tmp_path / "port") == 0


def test_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(PlatformError, match=r"cannot write the port to .*/file/port: "):
        write_port(tmp_path / "file" / "port", 8081)


@pytest.mark.parametrize("port", [1, 65_535])
def test_first_and_last_port_are_read(tmp_path: Path, port: int) -> None:
    write_port(tmp_path / "port", port)

    assert read_port(tmp_path / "port") == port
