"""The import contracts of the workspace hold."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(120)
def test_import_contracts_hold() -> None:
    program = Path(sysconfig.get_path("scripts")) / "lint-imports"

    done = subprocess.run(
        [program, "--config", "pyproject.toml", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
