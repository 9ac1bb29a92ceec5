"""Safe access to folders of experiments, in which trials may place links."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from svc_common.beneath import UnsafePathError
from svc_common.safe_folders import SafeFolder


class ExperimentRoots:
    """Opener of experiment folders that follows no links in or below configured roots.

    A folder below a root is opened relative to it, so that no link in or below the root is
    followed: those who write there are not trusted. The parent of any other folder is trusted, for
    the manager lets only the owner of the installation name one.

    Args:
        roots: of experiment folders; links in their own paths are followed.
    """

    def __init__(self, roots: Sequence[Path] = ()) -> None:
        spelled = {Path(os.path.abspath(root)) for root in roots}  # noqa: PTH100 - keeps links
        real = {root.resolve() for root in spelled}
        self._roots = sorted(spelled | real, key=lambda root: -len(root.parts))

    def open(self, directory: Path) -> SafeFolder:
        """Open an existing experiment folder without following links; the caller closes it.

        Raises:
            FileNotFoundError: it does not exist, or lies behind a link.
            OSError: it cannot be opened.
        """
        root, name = self._place(directory)
        with SafeFolder.open(root) as above:
            return above.folder(name)

    def make(self, directory: Path) -> SafeFolder:
        """Open an experiment folder without following links; create missing folders on the way.

        Raises:
            OSError: it cannot be created or opened.
        """
        above, name = self.open_parent(directory, create=True)
        with above:
            return above.make_folder(name)

    def open_parent(self, directory: Path, *, create: bool = False) -> tuple[SafeFolder, str]:
        """Open (with `create` make) the parent of an experiment's folder; return it and the name.

        Args:
            directory: the experiment's folder; it need not exist.
            create: whether missing folders above it are created.

        Raises:
            OSError: it cannot be opened.
        """
        root, name = self._place(directory)
        above = SafeFolder.open(root, create=create)
        way, _, last = name.rpartition("/")
        if not way:
            return above, last
        with above:
            return (above.make_folder(way) if create else above.folder(way)), last

    def _place(self, directory: Path) -> tuple[Path, str]:
        """Return the configured root above a path, or its parent, and the name relative to it.

        Raises:
            UnsafePathError: the path is not absolute, or has a part `..`.
        """
        if not directory.is_absolute() or ".." in directory.parts or not directory.name:
            raise UnsafePathError(str(directory))
        for root in self._roots:
            if root in directory.parents:
                return root, directory.relative_to(root).as_posix()
        return directory.parent, directory.name


def open_inside(root: Path, path: Path) -> BinaryIO:
    """Open a regular file below ``root`` for reading; raise if a link is on the way.

    A trial may replace its output by a link, which would be read with the rights of this process;
    the process may read secrets that the trial must not see. A link is therefore treated as a
    missing file.

    Args:
        root: a folder whose own path is trusted.
        path: the file.

    Raises:
        FileNotFoundError: the file does not exist, is no regular file, or lies behind a link.
        OSError: it cannot be read.
    """
    with SafeFolder.open(root) as folder:
        return folder.read_file(path.relative_to(root).as_posix())
