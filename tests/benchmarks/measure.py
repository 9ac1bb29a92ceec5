"""What every benchmark prints alike: the machine, the versions, medians with their spread."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path


def print_header(question: str, *, seed: int | None = None, packages: Sequence[str] = ()) -> None:
    """Print what is measured and where, so that the figures can be compared later."""
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
    """Print one figure with n, median and spread, and its ratio to a peer; return the median."""
    middle = statistics.median(values)
    line = f"   {name:<46} {middle:10.3f} {unit}"
    if len(values) > 1:
        line += f"   (n={len(values)}, {min(values):.3f} .. {max(values):.3f})"
    if peer:
        line += f"   {middle / peer:.2f} x peer ({peer:.3f})"
    if target:
        line += f"   target {target}"
    print(line)
    sys.stdout.flush()
    return middle


@contextlib.contextmanager
def private_home() -> Iterator[Path]:
    """Yield an empty folder that serves as HOME and holds `NNI_HOME` while the block runs."""
    kept = {key: os.environ.get(key) for key in ("HOME", "NNI_HOME")}
    with tempfile.TemporaryDirectory(prefix="nni-bench-") as folder:
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
