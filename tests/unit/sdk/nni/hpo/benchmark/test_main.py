import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["nni.hpo.benchmark", "nni_benchmark"])
def test_command_line_lists_problems_under_both_names(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0
    assert "compare" in done.stdout
