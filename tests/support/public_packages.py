"""Copies of packages that every user of the machine can import; the checkout may be private."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def public_packages(*folders: Path) -> Iterator[Path]:
    """Yield a folder with copies of packages, and remove it at the end.

    Args:
        folders: of the packages.
    """
    with tempfile.TemporaryDirectory() as name:
        public = Path(name)
        public.chmod(0o755)
        for folder in folders:
            shutil.copytree(
                folder, public / folder.name, ignore=shutil.ignore_patterns("__pycache__")
            )
        yield public
