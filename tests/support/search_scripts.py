"""Scripts that search architectures as clients of the services, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.local_shape import LocalShape

SCRIPT = "search.py"
TIMEOUT_S = 240.0


def run_search(shape: LocalShape, folder: Path, files: Mapping[str, str], *words: str) -> str:
    """Write modules into a folder, run `SCRIPT` there to its end; return its last line.

    Args:
        shape: services that it uses.
        folder: working directory; the first argument of the script is a folder below it.
        files: content by name, that of `SCRIPT` among them.
        words: further arguments.
    """
    for name, content in files.items():
        (folder / name).write_text(content)
    done = subprocess.run(
        [sys.executable, SCRIPT, str(folder / "searches"), *words],
        cwd=folder,
        env=shape.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]
