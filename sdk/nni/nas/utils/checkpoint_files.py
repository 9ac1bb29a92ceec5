"""Files of checkpoints: one object in one file, in the format of its suffix."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import nni
from nni.common.serializer.pickles import load_torch_file
from nni.durable_files import replace_durably

_logger = logging.getLogger(__name__)
_DRAFT = ".new"


class Serializer(ABC):
    """Base of formats of checkpoint files; `save` adds a suffix and replaces in one step.

    A file is replaced in one step: after a crash it has the old or the new content. An
    implementation provides `suffix`, `write` and `read`.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = JsonSerializer().save({"step": 3}, Path(folder) / "state")
        ...     path.name, JsonSerializer().load(Path(folder) / "state")
        ('state.json', {'step': 3})
    """

    suffix: ClassVar[str]
    """End of the names of files, such as `.json`."""

    @abstractmethod
    def write(self, obj: object, path: Path) -> None:
        """Write an object to a new file.

        Args:
            obj: any object.
            path: the file, with any suffix.
        """

    @abstractmethod
    def read(self, path: Path) -> Any:  # noqa: ANN401 - any object
        """Return the object in a file.

        Args:
            path: an existing file of this format.

        Returns:
            What was written.
        """

    def save(self, obj: object, path: str | Path) -> Path:
        """Write an object to a file, with the suffix added, in one step; return its path.

        Args:
            obj: any object that the format can express.
            path: the file, without the suffix; its folder exists.

        Returns:
            The path with the suffix.
        """
        target = self._with_suffix(Path(path))
        draft = target.with_name(target.name + _DRAFT)
        self.write(obj, draft)
        replace_durably(draft, target)
        return target

    def load(self, path: str | Path) -> Any:  # noqa: ANN401 - any object
        """Return the object in a file, with or without the suffix; raise if there is none.

        Args:
            path: the file, with the suffix or without.

        Returns:
            What `save` was given.

        Raises:
            FileNotFoundError: there is no such file; a file with the suffix of another format is
                named in a warning of the log.
        """
        given = Path(path)
        target = given if given.name.endswith(self.suffix) else self._with_suffix(given)
        if not target.is_file():
            for other in self._others(target):
                _logger.warning(
                    "%s is of another format; load it with the serializer of its suffix", other
                )
            raise FileNotFoundError(f"no checkpoint at {target}")
        return self.read(target)

    def _with_suffix(self, path: Path) -> Path:
        return path.with_name(path.name + self.suffix)

    def _others(self, target: Path) -> Iterator[Path]:
        """Yield files whose names differ by the suffix only."""
        stem = target.name.removesuffix(self.suffix)
        folder = target.parent
        if folder.is_dir():
            yield from sorted(one for one in folder.iterdir() if one.is_file() and one.stem == stem)


class TorchSerializer(Serializer):
    """Files of `torch.save`: any object, tensors without a copy in text.

    Loading runs code that the file names: load your own files only.

    Examples:
        >>> TorchSerializer.suffix
        '.torch'
    """

    suffix = ".torch"

    def write(self, obj: object, path: Path) -> None:
        """Write an object by `torch.save`."""
        import torch

        torch.save(obj, path)

    def read(self, path: Path) -> Any:  # noqa: ANN401 - any object
        """Return the object; its tensors are on the CPU."""
        return load_torch_file(path)


class JsonSerializer(Serializer):
    """Documents of `nni.dump`: readable, with pickles for what JSON has no form for.

    Examples:
        >>> JsonSerializer.suffix
        '.json'
    """

    suffix = ".json"

    def write(self, obj: object, path: Path) -> None:
        """Write an object by `nni.dump`, with pickles of any size."""
        path.write_text(nni.dump(obj, pickle_size_limit=0), encoding="utf-8")

    def read(self, path: Path) -> Any:  # noqa: ANN401 - any object
        """Return the object by `nni.load`."""
        return nni.load(path.read_text("utf-8"))


_default: list[Serializer] = [TorchSerializer()]
"""The default serializer, which is replaced in place."""


def get_default_serializer() -> Serializer:
    """Return the format of checkpoints that name none.

    Returns:
        A `TorchSerializer`, unless `set_default_serializer` has set another one.

    Examples:
        >>> get_default_serializer().suffix
        '.torch'
    """
    return _default[0]


def set_default_serializer(serializer: Serializer) -> None:
    """Set the format of checkpoints that name none, in this process.

    Args:
        serializer: format.

    Raises:
        TypeError: it is no serializer.

    Examples:
        >>> set_default_serializer(TorchSerializer())
    """
    if not isinstance(serializer, Serializer):
        raise TypeError(
            f"serializer must be an instance of Serializer, such as JsonSerializer(), got "
            f"{serializer!r}"
        )
    _default[0] = serializer
