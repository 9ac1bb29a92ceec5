"""Folder of the agent's own state: who it is, and the tools it gives to trials."""

import json
import secrets
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from svc_common.errors import FailedPreconditionError


def runner_id(folder: Path, given: str = "") -> str:
    """Give the id of the agent whose folder this is; drawn at its first start.

    Args:
        folder: of the agent; made when needed.
        given: the id that the settings say; it wins.

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
    """Give the folder of the trial side of the library, which is only run, never imported.

    Raises:
        FailedPreconditionError: the library is not installed.
    """
    spec = find_spec("nni")
    if spec is None or spec.origin is None:
        raise FailedPreconditionError("the package nni is not installed beside the trial-runner")
    return Path(spec.origin).parent / "trial"


def write_tools(folder: Path, trial_sdk: Path) -> Path:
    """Put `nni-trial` into a folder that goes on the PATH of trials; return the folder.

    Raises:
        FailedPreconditionError: it cannot be written.
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
