"""Server of the external tuner of the examples, run by Node."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.servers import require_binary

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "external-tuner"
INSTALL_TIMEOUT_S = 90.0


@contextmanager
def node_tuner(folder: Path) -> Iterator[str]:
    """Install the example's packages into a copy, serve on a free port, and yield the address.

    Skips the test if Node, npm or the package registry is unavailable (fails if
    NNI_REQUIRE_SERVICES=1).
    """
    node, npm = require_binary("node"), require_binary("npm")
    home = Path(
        shutil.copytree(EXAMPLE, folder / "example", ignore=shutil.ignore_patterns("node_modules"))
    )
    _install(npm, home)
    process = subprocess.Popen(
        [node, "server.mjs", "--port", "0", "--proto", str(ROOT / "proto")],
        cwd=home,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        yield line.removeprefix("listening on ").strip()
    finally:
        process.terminate()
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()


def _install(npm: str, home: Path) -> None:
    try:
        done = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"],
            cwd=home,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
        reason = done.stderr.strip() if done.returncode != 0 else ""
    except subprocess.TimeoutExpired:
        reason = "npm takes too long"
    if not reason:
        return
    if os.environ.get("NNI_REQUIRE_SERVICES") == "1":
        pytest.fail(reason)
    pytest.skip(f"the packages of the example cannot be installed: {reason[-200:]}")
