"""Does any answer break under 10,000 bad requests over REST and 10,000 over gRPC?

Runs `tests/fuzz` with many times its usual cases: every REST operation by schemathesis, every
gRPC method with valid, half-valid and random bytes, what trials, hosts, files and people write.
Wanted is no 5xx, no INTERNAL or UNKNOWN, no traceback in a log, no hang. One line tells of each
operation when all its cases are done; it takes about ten minutes.

`python -m tests.benchmarks.bench_fuzz [CASES [SEED]]`
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.measure import print_figure, print_header
from tests.fuzz import test_grpc, test_rest

WANTED = 10_000
"""Cases of each kind."""
SPARE = 1.25
"""Times as many requests are asked for: some routes have few that differ."""
PLAIN_FACTOR = 10.0
"""Times the usual cases of what is no request: lines, files, documents."""
ROOT = Path(__file__).parents[2]
PYTEST = [sys.executable, "-m", "pytest", "-v", "--no-header", "--durations=5", "--timeout=3000"]


def tried(words: list[str], factor: float, seed: int) -> tuple[int, float, int]:
    """Run some fuzzing tests; give the number of cases, the seconds and the exit code."""
    with TemporaryDirectory() as folder:
        tally = Path(folder) / "tally"
        tally.touch()
        variables = {
            **os.environ,
            "NNI_FUZZ_FACTOR": str(factor),
            "NNI_FUZZ_SEED": str(seed),
            "NNI_FUZZ_TALLY": str(tally),
        }
        begin_s = time.perf_counter()
        done = subprocess.run(
            [*PYTEST, *words],
            cwd=ROOT,
            env=variables,
            check=False,
        )
        return tally.stat().st_size, time.perf_counter() - begin_s, done.returncode


def main() -> int:
    """Print the figures."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else WANTED
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    print_header(__doc__ or "", seed=seed, packages=["schemathesis", "hypothesis", "grpcio"])
    rest = SPARE * wanted / (len(test_rest.OPERATIONS) * test_rest.CASES)
    calls = wanted / (len(test_grpc.METHODS) * test_grpc.CASES)
    parts = (
        ("requests over REST", ["tests/fuzz/test_rest.py"], rest, wanted),
        ("calls over gRPC", ["tests/fuzz/test_grpc.py"], calls, wanted),
        ("lines and documents", ["tests/fuzz/test_lines.py", "tests/fuzz/test_documents.py"], 0, 0),
    )
    results = [(name, *tried(words, f or PLAIN_FACTOR, seed), t) for name, words, f, t in parts]
    for name, cases, took_s, _, target in results:
        print_figure(name, [cases], "cases", target=f">= {target}" if target else "")
        print_figure(f"{name}: time", [took_s], "s")
    broken = [name for name, _, _, code, _ in results if code != 0]
    few = [name for name, cases, _, _, target in results if cases < target]
    print(f"   BROKEN: {', '.join(broken)}; see above" if broken else "   nothing broke")
    if few:
        print(f"   too few: {', '.join(few)}")
    return 1 if broken or few else 0


if __name__ == "__main__":
    sys.exit(main())
