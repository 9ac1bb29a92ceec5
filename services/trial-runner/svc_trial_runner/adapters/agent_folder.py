"""Folder of the agent's own state: its id, and the tools for trials."""

import json
import secrets
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from svc_common.errors import FailedPreconditionError


def runner_id(folder: Path, given: str = "") -> str:
    """Return the id of the agent that owns a folder; drawn at its first start.

    Args:
        folder: of the agent; created if missing.
        given: id from the settings, which overrides.

    Raises:
        FailedPreconditionError: the folder cannot be written.
    """
    path = folder / "runner.json"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if given:
            return given
        if path.exists():
            return str(json.loads(path.read_text(encoding="utf-8"))["runner_id"])
        name = f"runner-{secrets.token_hex(4)}"
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps({"runner_id": name}), encoding="utf-8")
        draft.replace(path)
    except (OSError, ValueError, KeyError) as error:
        raise FailedPreconditionError(f"{folder} cannot be used: {error}") from error
    return name


def trial_sdk_folder() -> Path:
    """Return the folder of the library's trial side, which is run and never imported here.

    Raises:
        FailedPreconditionError: the library is not installed.
    """
    spec = find_spec("nni")
    if spec is None or spec.origin is None:
        raise FailedPreconditionError("the package nni is not installed beside the trial-runner")
    return Path(spec.origin).parent / "trial"


def write_tools(folder: Path, trial_sdk: Path) -> Path:
    """Write `nni-trial` into a folder for the PATH of trials; return the folder.

    Raises:
        FailedPreconditionError: the folder cannot be written.
    """
    tools = folder / "bin"
    tools.mkdir(mode=0o755, parents=True, exist_ok=True)
    made = subprocess.run(
        [sys.executable, "-ISs", str(trial_sdk / "launcher.py"), str(tools)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise FailedPreconditionError(f"nni-trial cannot be written to {tools}: {made.stderr}")
    return tools
