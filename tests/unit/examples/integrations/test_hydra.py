"""The example runs in a process of its own: Hydra's registries are global."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[4] / "examples/integrations/hydra/train.py"


def test_the_sweep_writes_its_best_settings(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--multirun", "hydra.sweep.dir=out", "hydra.sweeper.n_trials=3"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("degree ") >= 3
    assert "best_value" in (tmp_path / "out/optimization_results.yaml").read_text("utf-8")
