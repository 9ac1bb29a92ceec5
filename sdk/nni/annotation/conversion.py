"""Conversion of a folder of annotated code: a copy for the trials, and the search space."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from nni.annotation.annotated_module import AnnotatedModule
from nni.annotation.errors import AnnotationError
from nni.annotation.grammar import PREFIX
from nni.hpo.json_value import JsonValue
from nni.hpo.space.parser import parse_space

_CACHE: Final = "__pycache__"
"""Never copied: it belongs to the original files."""
_ENVIRONMENT_FILE: Final = "pyvenv.cfg"
"""Marks a virtual environment, whose files are not the user's code."""


def _keep_all(_name: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Conversion:
    """Result of a conversion: search space, and paths of the files that differ from the source."""

    search_space: dict[str, JsonValue]
    """Name to `{"_type": ..., "_value": [...]}`, in the order of files and lines."""
    converted: tuple[Path, ...]
    """The files that differ from the original, inside the folder."""


def convert(
    source: Path, destination: Path, *, leave: Callable[[str], bool] = _keep_all
) -> Conversion:
    """Copy a folder, annotations turned to look-ups; return search space and changed files.

    The original is only read. Links stay links, to the same places as before; but a Python file
    behind a link is converted like any other. Virtual environments are linked to.

    Args:
        source: the code directory.
        destination: an empty folder outside of it, or one that does not exist yet.
        leave: says of a path inside the folder, with `/` and for folders a `/` at the end, whether
            it is no code: it is linked to instead of copied or converted.

    Raises:
        AnnotationError: a rule of annotations is broken, or there is no annotation.
        OSError: a file cannot be read or written; what has been written stays.
    """
    files = [*_walk(source, Path(), leave)]
    modules = _annotated(source, files)
    keys = _keys(source, modules)
    space = _search_space(modules, keys)
    contents = {module.path: module.converted(keys[module.path]) for module in modules}
    destination.mkdir(parents=True, exist_ok=True)
    for file in files:
        _place(file, source, destination, contents)
    return Conversion(space, tuple(contents))


def derive_search_space(
    source: Path, *, leave: Callable[[str], bool] = _keep_all
) -> dict[str, JsonValue]:
    """Return the search space that the annotations of a folder of code describe.

    Args and errors are those of `convert`; nothing is written.
    """
    modules = _annotated(source, [*_walk(source, Path(), leave)])
    return _search_space(modules, _keys(source, modules))


@dataclass(frozen=True, slots=True)
class _File:
    """Entry of the code folder that is converted: its path, and its form in the copy."""

    path: Path
    """Inside the folder."""
    kind: Literal["file", "folder", "link"]
    """Form of the entry in the copy; a link leads to the original."""


def _walk(root: Path, inside: Path, leave: Callable[[str], bool]) -> Iterator[_File]:
    for entry in sorted(os.scandir(root / inside), key=lambda entry: entry.name):
        path = inside / entry.name
        kind = _kind(entry, path, leave)
        if kind is not None:
            yield _File(path, kind)
        if kind == "folder":
            yield from _walk(root, path, leave)


def _kind(
    entry: os.DirEntry[str], path: Path, leave: Callable[[str], bool]
) -> Literal["file", "folder", "link"] | None:
    """Return how an entry is copied: `link`, `folder` or `file`; None for caches and sockets."""
    is_folder, is_file, is_link = entry.is_dir(), entry.is_file(), entry.is_symlink()
    if entry.name == _CACHE or not (is_folder or is_file or is_link):
        return None  # sockets and pipes are of running processes
    if leave(path.as_posix() + ("/" if is_folder else "")):
        return "link"
    if is_folder:
        is_environment = (Path(entry.path) / _ENVIRONMENT_FILE).exists()
        return "link" if is_link or is_environment else "folder"
    return "link" if is_link and not (is_file and _may_be_annotated(path)) else "file"


def _may_be_annotated(path: Path) -> bool:
    return path.suffix == ".py"


def _annotated(source: Path, files: Sequence[_File]) -> list[AnnotatedModule]:
    modules = []
    for file in files:
        if file.kind != "file" or not _may_be_annotated(file.path):
            continue
        content = (source / file.path).read_bytes()
        # Most files are not worth parsing, and old ones may not be Python any more.
        if PREFIX.encode() in content:
            module = AnnotatedModule(file.path, content)
            if module.is_annotated:
                modules.append(module)
    return modules


_Keys: TypeAlias = Mapping[Path, Sequence[str]]
"""Per file the names of its hyperparameters in the search space, in the order of their lines."""


def _keys(source: Path, modules: Sequence[AnnotatedModule]) -> _Keys:
    """Name each hyperparameter: as in the code if that is unique, else `<module>/<name>/<n>`."""
    if not modules:
        raise AnnotationError(
            source,
            0,
            "must have an annotation in one of its Python files, for example "
            "'''@nni.variable(nni.uniform(0.1, 0.5), name=dropout)''' before an assignment to "
            "dropout",
        )
    uses = Counter(one.name for module in modules for one in module.hyperparameters)
    keys = {}
    for module in modules:
        seen: Counter[str] = Counter()
        names = []
        for one in module.hyperparameters:
            unique = uses[one.name] == 1
            names.append(one.name if unique else f"{module.name}/{one.name}/{seen[one.name]}")
            seen[one.name] += 1
        keys[module.path] = names
    return keys


def _search_space(modules: Sequence[AnnotatedModule], keys: _Keys) -> dict[str, JsonValue]:
    space: dict[str, JsonValue] = {}
    for module in modules:
        for one, key in zip(module.hyperparameters, keys[module.path], strict=True):
            entry = {"_type": one.type, "_value": one.wire_values()}
            try:
                parse_space({key: entry}, algorithm="annotations")
            except ValueError as error:
                raise AnnotationError(module.path, one.line, str(error)) from error
            space[key] = entry
    return space


def _place(file: _File, source: Path, destination: Path, contents: Mapping[Path, bytes]) -> None:
    original, copy = source / file.path, destination / file.path
    if file.kind == "folder":
        copy.mkdir()
    elif file.kind == "link":
        # Not resolved: what the original link means later, this one means too.
        copy.symlink_to(original.absolute())
    elif file.path in contents:
        copy.write_bytes(contents[file.path])
        shutil.copymode(original, copy)
    else:
        shutil.copy2(original, copy)
