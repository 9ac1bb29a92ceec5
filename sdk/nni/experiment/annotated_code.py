"""Conversion of annotated code into the copy that trials run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nni.annotation.conversion import convert, derive_search_space
from nni.annotation.errors import AnnotationError
from nni.experiment.code_archive import ignore_spec
from nni.experiment.config import ExperimentConfig
from nni.experiment.config.checks import check_search_space
from nni.experiment.environment import nni_home
from nni.experiment.errors import (
    ConfigError,
    NotFoundError,
    Problem,
    RefusedError,
    WrongStateError,
)
from nni.hpo.json_value import JsonValue
from nni_wire.folders import ANNOTATED_CODE_FOLDER

_NOTHING_CREATED: Final = (ConfigError, RefusedError, NotFoundError, WrongStateError)
"""Errors after which no experiment can be using the copy. After any other one might."""


@contextmanager
def converted_code(config: ExperimentConfig) -> Iterator[ExperimentConfig]:
    """Yield the configuration; for annotated code that of a converted copy, removed on refusal.

    Without `useAnnotation` it is the one given. Else it has the search space that the annotations
    describe, and names a converted copy of the code directory. The copy belongs to the experiment
    from then on; it is removed if the block ends because the experiment was refused.

    Raises:
        ConfigError: an annotation breaks a rule, there is none, or an algorithm does not take the
            search space.
        RefusedError: the code cannot be copied.
    """
    if not config.use_annotation:
        yield config
        return
    folder = _new_folder()
    try:
        converted = _convert(config, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        yield converted
    except _NOTHING_CREATED:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def remove_converted_code(code_directory: str) -> None:
    """Remove the copy that a deleted experiment ran; code of the user's own is left alone."""
    folder = Path(code_directory)
    if folder.parent == _copies():
        shutil.rmtree(folder, ignore_errors=True)


def annotated_search_space(directory: Path) -> dict[str, JsonValue]:
    """Return the search space that the annotations in a code directory describe.

    Raises:
        ConfigError: an annotation breaks a rule, or there is none.
        RefusedError: the code cannot be read.
    """
    with _errors_of(directory):
        return derive_search_space(directory, leave=_no_code(directory, ()))


def _copies() -> Path:
    return nni_home().absolute() / ANNOTATED_CODE_FOLDER


def _new_folder() -> Path:
    try:
        _copies().mkdir(mode=0o700, parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="", dir=_copies()))
    except OSError as error:
        raise _refused(error) from error


def _convert(config: ExperimentConfig, folder: Path) -> ExperimentConfig:
    directory = config.trial_code_directory
    written = (nni_home(), config.experiment_working_directory)
    with _errors_of(directory):
        done = convert(directory, folder, leave=_no_code(directory, written))
    converted = config.model_copy(
        update={"search_space": done.search_space, "trial_code_directory": folder}
    )
    check_search_space(converted)
    return converted


@contextmanager
def _errors_of(directory: Path) -> Iterator[None]:
    """Raise annotation errors in a code directory as ConfigError, file errors as RefusedError."""
    try:
        yield
    except AnnotationError as error:
        place = f"{directory / error.path}:{error.line}" if error.line else str(error.path)
        raise ConfigError([Problem("useAnnotation:", f"{place}: {error.reason}")]) from error
    except OSError as error:
        raise _refused(error) from error


def _refused(error: OSError) -> RefusedError:
    return RefusedError(f"the annotated code cannot be copied: {error}; make it possible, or room")


def _no_code(directory: Path, written: tuple[Path, ...]) -> Callable[[str], bool]:
    """Return the predicate for paths in a code directory that are not part of the code.

    That is what `.nniignore` names, and folders that experiments themselves write.
    """
    spec = ignore_spec(directory)
    root = os.path.realpath(directory)
    own = {os.path.relpath(os.path.realpath(folder), root) + "/" for folder in written}
    return lambda path: path in own or spec.match_file(path)
