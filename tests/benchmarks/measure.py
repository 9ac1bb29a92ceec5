"""What every benchmark prints alike: the machine, the versions, medians with their spread.

`./dev bench --check` names a file in `NNI_BENCH_MISSED`; missed targets are appended to it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import operator
import os
import platform
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.guard import private_folder_prefix, run_guarded

MISSED_FILE: Final = "NNI_BENCH_MISSED"
"""Variable with the name of the file of missed targets."""
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "": operator.eq,
}
_TARGET: Final = re.compile(r"(?:median )?(?P<comparison>[<>]=?|) ?(?P<limit>[\d.]+)(?: \D*)?")
_MOST: Final = re.compile(r"none over (?P<limit>[\d.]+)")


def print_header(question: str, *, seed: int | None = None, packages: Sequence[str] = ()) -> None:
    """Print what is measured and where, so that the figures can be compared later.

    From here on the benchmark runs under a guard, which ends what it starts.
    """
    run_guarded()
    load = os.getloadavg()[0]
    print(f"\n== {question.strip().splitlines()[0]}")
    print(
        f"   {platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"load {load:.1f}" + ("" if seed is None else f", seed {seed}")
    )
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    if versions:
        print("   " + ", ".join(versions))


def print_figure(
    name: str, values: Sequence[float], unit: str, *, target: str = "", peer: float | None = None
) -> float:
    """Print one figure with n, median and spread, and its ratio to a peer; return the median.

    Args:
        name: what was measured.
        values: all measurements.
        unit: unit of the values.
        target: `<= 25 ms`, `>= 100`, `0`, or `none over 50`; compared with the median, the last
            one with every value. Empty: none.
        peer: the same figure of another program.

    Raises:
        ValueError: the target cannot be understood.
    """
    middle = statistics.median(values)
    line = f"   {name:<46} {middle:10.3f} {unit}"
    if len(values) > 1:
        line += f"   (n={len(values)}, {min(values):.3f} .. {max(values):.3f})"
    if peer:
        line += f"   {middle / peer:.2f} x peer ({peer:.3f})"
    if target:
        met = is_met(target, values)
        line += f"   target {target}{'' if met else ' MISSED'}"
        if not met:
            record_missed(f"{name}: {middle:.3f} {unit}, target {target}")
    print(line)
    sys.stdout.flush()
    return middle


def is_met(target: str, values: Sequence[float]) -> bool:
    """Return whether measurements meet a target; see `print_figure`."""
    if most := _MOST.fullmatch(target):
        return max(values) <= float(most["limit"])
    found = _TARGET.fullmatch(target)
    if found is None:
        raise ValueError(f"target must be like '<= 25 ms', '0' or 'none over 50', got {target!r}")
    return _COMPARISONS[found["comparison"]](statistics.median(values), float(found["limit"]))


def record_missed(what: str) -> None:
    """Add a missed target to the file of `./dev bench --check`, if that asks for it."""
    path = os.environ.get(MISSED_FILE)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{Path(sys.argv[0]).stem}: {what}\n")


@contextlib.contextmanager
def private_home() -> Iterator[Path]:
    """Yield an empty folder that serves as HOME and holds `NNI_HOME` while the block runs."""
    kept = {key: os.environ.get(key) for key in ("HOME", "NNI_HOME")}
    with tempfile.TemporaryDirectory(prefix=private_folder_prefix()) as folder:
        os.environ["HOME"] = folder
        os.environ["NNI_HOME"] = f"{folder}/nni"
        try:
            yield Path(folder)
        finally:
            for key, value in kept.items():
                if value is None:
                    os.environ.pop(key, None)
                else:
                    os.environ[key] = value
