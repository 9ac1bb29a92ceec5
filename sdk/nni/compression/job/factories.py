"""Loader of the functions of a user's code that a job names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from nni.compression.job.field_checks import JobError


def load_factory(reference: str, field: str, code_directory: Path) -> Callable[..., Any]:
    """Import the callable that a job names, from its code directory only; raise JobError otherwise.

    Nothing of a module elsewhere is executed.

    Args:
        reference: `package.module:function`.
        field: name of the field, for errors.
        code_directory: folder of the job's code; it is put on `sys.path`.

    Raises:
        JobError: the module is not below the folder, cannot be imported, or lacks the function.
    """
    module_name, _, name = reference.partition(":")
    root = code_directory.resolve()
    top = module_name.partition(".")[0]
    loaded = sys.modules.get(top)
    spec = PathFinder.find_spec(top, [str(root)]) if loaded is None else loaded.__spec__
    places = [spec.origin] if spec is not None and spec.origin else []
    if spec is not None and spec.submodule_search_locations:
        places += list(spec.submodule_search_locations)
    if not places or not all(Path(place).resolve().is_relative_to(root) for place in places):
        reason = f"it has no {top!r}" if loaded is None else f"{top!r} was imported from elsewhere"
        raise JobError(
            field, f"must name a module in the code directory, got {reference!r}; {reason}"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise JobError(field, f"names {reference!r}: {error}") from error
    found: object = getattr(module, name, None)
    if not callable(found):
        raise JobError(field, f"names {reference!r}, but {module_name} has no function {name!r}")
    return found
