"""Trial API of the SDK, put at the end of the import path of the user's interpreters.

An agent without an installation has the library in its own bundle only. The variable `PYTHONPATH`
puts folders before the user's packages, so it has one folder with a `sitecustomize` that appends
the folder of the API to the end of the path: where the user has installed the library, that
installation is imported.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from svc_common.errors import FailedPreconditionError
from svc_common.storage.atomic_files import atomic_file

PYTHON_PATH: Final = "PYTHONPATH"
_API_PACKAGES: Final = "packages"
_PACKAGES: Final = ("nni", "nni_wire")
"""Packages that a trial may import; the API itself needs the standard library only."""
_HOOK: Final = '''\
"""Appends the trial API to the path, then runs the `sitecustomize` that this one hides."""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_own = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != _own]
sys.path.append(os.path.join(os.path.dirname(_own), "packages"))
_spec = PathFinder.find_spec("sitecustomize", sys.path)
if _spec is not None and _spec.loader is not None:
    _module = module_from_spec(_spec)
    sys.modules["sitecustomize"] = _module
    _spec.loader.exec_module(_module)
'''


def write_trial_api(folder: Path, library: Path) -> Path:
    """Write the start-up hook that makes the trial API importable; return its `PYTHONPATH` folder.

    Args:
        folder: parent of both; created if missing.
        library: folder `nni` of the library.

    Raises:
        FailedPreconditionError: the folder cannot be written.
    """
    hook, packages = folder / "hook", folder / _API_PACKAGES
    try:
        hook.mkdir(parents=True, exist_ok=True)
        packages.mkdir(exist_ok=True)
        with atomic_file(hook / "sitecustomize.py") as file:
            file.write(_HOOK.encode())
        for source in (library.with_name(name) for name in _PACKAGES):
            if source.is_dir():
                draft = packages / f".{source.name}"
                draft.unlink(missing_ok=True)
                draft.symlink_to(source)
                draft.replace(packages / source.name)
    except OSError as error:
        raise FailedPreconditionError(f"{folder} cannot be used: {error}") from error
    return hook


def warm_file(folder: Path) -> Path:
    """Return the path of the warm interpreter's program as trials import the library.

    Modules that a trial has imported are preloaded for the next ones if they lie beside it.

    Args:
        folder: that of `write_trial_api`.
    """
    return folder / _API_PACKAGES / "nni" / "trial" / "warm.py"


def with_trial_api(variables: Mapping[str, str], hook: Path) -> dict[str, str]:
    """Return variables whose `PYTHONPATH` begins with the folder of the hook."""
    before = variables.get(PYTHON_PATH, "")
    return {**variables, PYTHON_PATH: f"{hook}:{before}" if before else str(hook)}
