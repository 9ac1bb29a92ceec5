import subprocess
import sys


def test_importing_evaluators_loads_no_torch() -> None:
    script = "import sys, nni.nas.evaluator; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=30).returncode == 0
