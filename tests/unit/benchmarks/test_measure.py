"""Targets of benchmarks are compared, and `./dev bench --check` fails on a missed one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.benchmarks.bench_throughput import shares, steady_rate
from tests.benchmarks.figures import at_most, print_figures
from tests.benchmarks.measure import is_met, print_figure

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("target", "values", "met"),
    [
        ("<= 25", [24, 25, 90], True),
        ("median <= 25", [26], False),
        (">= 100", [99.9], False),
        ("<= 1.5 ms CPU", [1.5], True),
        ("< 5 s", [5], False),
        ("> 0", [0], False),
        ("0", [0], True),
        ("0", [1], False),
        ("none over 50", [1, 2, 51], False),
        ("none over 50", [50], True),
    ],
)
def test_target_is_compared_with_the_median(target: str, values: list[float], met: bool) -> None:
    assert is_met(target, values) is met


@pytest.mark.parametrize("target", ["fast", "about 3", "<= many"])
def test_target_that_cannot_be_compared_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="target must be like"):
        is_met(target, [1])


def test_missed_targets_are_marked_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NNI_BENCH_MISSED", str(tmp_path / "missed"))

    print_figure("quick", [1.0], "ms", target="<= 2 ms")
    print_figure("slow", [3.0], "ms", target="<= 2 ms")
    print_figures([at_most("size", 3, 2), at_most("weight", 1, 2)])

    assert capsys.readouterr().out.count("MISSED") == 2
    recorded = (tmp_path / "missed").read_text().splitlines()
    assert [line.partition(": ")[2] for line in recorded] == [
        "slow: 3.000 ms, target <= 2 ms",
        "size: 3, target <= 2",
    ]


def test_same_number_of_trials_counts_on_both_sides() -> None:
    ends = [float(second) for second in range(8)]

    # A quarter does not count: six trials, five intervals of a second.
    assert steady_rate(ends[::-1], 8) == pytest.approx(1.0)
    assert shares(19, 8) == [3, 3, 3, 2, 2, 2, 2, 2]
    with pytest.raises(ValueError, match="9 trials must have ended, got 8"):
        steady_rate(ends, 9)


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    """Return a folder with benchmarks that meet, miss, and break."""
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    start += "from tests.benchmarks.measure import print_figure, print_header\nprint_header('?')\n"
    for name, limit, end in (("good", 2, ""), ("slow", 0, ""), ("broken", 2, "sys.exit(4)")):
        text = f"{start}print_figure('one', [1], 's', target='<= {limit} s')\n{end}"
        (tmp_path / f"bench_{name}.py").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "printed"),
    [
        (["good", "--check"], 0, ""),
        (["slow"], 0, ""),
        (["slow", "--check"], 1, "missed: bench_slow: one: 1.000 s, target <= 0 s"),
        (["--check", "broken"], 1, "failed: "),
        (["broken"], 1, ""),
        (["--check"], 1, "missed: bench_slow: one: 1.000 s, target <= 0 s"),
    ],
)
def test_check_fails_on_a_missed_target_or_a_failure(
    benchmarks: Path, arguments: list[str], code: int, printed: str
) -> None:
    done = subprocess.run(
        [str(ROOT / "dev"), "bench", *arguments],
        env={**os.environ, "NNI_BENCH_FOLDER": str(benchmarks)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == code, done.stderr
    assert printed in done.stderr
