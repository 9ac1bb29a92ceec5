"""A bundle whose agent sleeps until it is ended: platforms are tested without bus and manager."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path
from typing import Final

from svc_trial_runner.fleet.adapters.bundles.worker_commands import worker_program

RUN: Final = """\
import pathlib
import sys
import time

if sys.argv[1] == "agent":
    time.sleep(1_000_000)
sys.argv = sys.argv[1:]
exec((pathlib.Path(__file__).parent / "program.py").read_bytes())
"""


class SleepingAgents:
    """Store of bundles with one bundle, the same for all machines.

    Args:
        folder: in which the bundle is written.
    """

    def __init__(self, folder: Path) -> None:
        content = _packed({"run.py": RUN.encode(), "program.py": worker_program(), "site/a": b""})
        self._path = folder / f"agent-{hashlib.sha256(content).hexdigest()}.tar.gz"
        self._path.write_bytes(content)

    async def bundle(self, python: tuple[int, int], platform_tag: str) -> Path:
        """Return the bundle."""
        _ = python, platform_tag
        return self._path


def _packed(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
