"""Wheels of all distributions of this repository: `python -m tests.support.wheels FOLDER`."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = tuple(
    sorted(
        path.parent.relative_to(ROOT)
        for pattern in ("*/pyproject.toml", "services/*/pyproject.toml")
        for path in ROOT.glob(pattern)
    )
)


def source_files(distribution: Path) -> Iterator[Path]:
    """Yield the files of a distribution that git tracks or would add, relative to its folder."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "."],
        cwd=ROOT / distribution,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / distribution / name).exists():
            yield Path(name)


def build_wheels(target: Path) -> None:
    """Write one wheel of each distribution to `target`.

    Sources are copied first: setuptools reuses its `build` folder, so that deleted modules would
    reappear in the wheel.
    """
    sources = target / "sources"
    for distribution in DISTRIBUTIONS:
        for file in source_files(distribution):
            copy = sources / distribution / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / distribution / file, copy, follow_symlinks=False)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"),
            *("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(target)),
            *(str(sources / distribution) for distribution in DISTRIBUTIONS),
        ],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    shutil.rmtree(sources)


if __name__ == "__main__":
    build_wheels(Path(sys.argv[1]))
