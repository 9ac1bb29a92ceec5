"""The example runs with fewer trials than in its README."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[4] / "examples/integrations/ray-tune/search.py"


@pytest.mark.timeout(600)  # each trial is a process that imports Ray
def test_a_search_of_ray_tune_finds_accurate_machines() -> None:
    pytest.importorskip("ray", reason="run by .ci/integrations")
    # A process of its own: Ray starts once in one.
    ran = subprocess.run([sys.executable, SCRIPT, "4"], capture_output=True, text=True, check=False)

    best = re.search(r"best of 4 trials: ([\d.]+) with", ran.stdout)
    assert best is not None, ran.stderr
    assert float(best[1]) > 0.9  # guessing gives 0.1
