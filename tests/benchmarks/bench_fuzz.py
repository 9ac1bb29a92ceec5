"""Does any answer break under 10,000 bad requests over REST and 10,000 over gRPC?

Runs `tests/fuzz` with many times its usual cases: every REST operation by schemathesis, every
gRPC method with valid, half-valid and random bytes, what trials, hosts, files and people write.
Wanted is no 5xx, no INTERNAL or UNKNOWN, no traceback in a log, no hang.

`python -m tests.benchmarks.bench_fuzz [FACTOR [SEED]]`
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.measure import print_figure, print_header
from tests.fuzz import test_grpc, test_rest

WANTED = 10_000
ROOT = Path(__file__).parents[2]


def main() -> int:
    """Print the figures."""
    rest = len(test_rest.OPERATIONS) * test_rest.CASES
    calls = len(test_grpc.METHODS) * test_grpc.CASES
    factor = float(sys.argv[1]) if len(sys.argv) > 1 else WANTED / min(rest, calls)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    print_header(__doc__ or "", seed=seed, packages=["schemathesis", "hypothesis", "grpcio"])
    words = [sys.executable, "-m", "pytest", "-q", "--timeout", "3000", "tests/fuzz"]
    variables = {**os.environ, "NNI_FUZZ_FACTOR": str(factor), "NNI_FUZZ_SEED": str(seed)}
    begin = time.perf_counter()
    done = subprocess.run(words, cwd=ROOT, env=variables, check=False)
    print_figure("requests over REST", [rest * factor], "cases", target=f">= {WANTED}")
    print_figure("calls over gRPC", [calls * factor], "cases", target=f">= {WANTED}")
    print_figure("time", [time.perf_counter() - begin], "s")
    print("   nothing broke" if done.returncode == 0 else "   BROKEN: see above")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
