"""Folder of the agent's own state: its id, and the tools for trials."""

import json
import os
import secrets
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.own_files import (
    place_for_file,
    private_folder,
    read_or_set_aside,
    set_aside,
)
from svc_common.storage.atomic_files import atomic_file
from svc_common.subjects import check_id

_ENTERED: Final = 0o711
"""Others may enter, but neither list nor write."""
_COMMAND: Final = "nni-trial"
"""Command for trials that are no Python programs."""


def runner_id(folder: Path, given: str = "") -> str:
    """Return the agent id given or stored in its folder; draw and store one at the first start.

    Args:
        folder: of the agent; created if missing.
        given: id from the settings, which overrides.

    Raises:
        FailedPreconditionError: the folder cannot be written.
    """
    path = folder / "runner.json"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place_for_file(path)
        if given:
            return given
        known = _known_id(path)
        if known:
            return known
        name = f"runner-{secrets.token_hex(4)}"
        with atomic_file(path) as file:
            file.write(json.dumps({"runner_id": name}).encode())
    except OSError as error:
        raise FailedPreconditionError(f"{folder} cannot be used: {error}") from error
    return name


def _known_id(path: Path) -> str:
    """Read the agent id from a file; empty if the file is missing, or damaged: then rename it.

    Raises:
        OSError: the file cannot be opened.
    """
    content = read_or_set_aside(path)
    if content is None:
        return ""
    try:
        fields = json.loads(content)
        return check_id("runner_id", fields["runner_id"])
    except (ValueError, KeyError, TypeError, RecursionError, InvalidArgumentError) as error:
        set_aside(path, f"it names no agent ({error}); its trials are reported lost")
        return ""


def trial_sdk_folder() -> Path:
    """Return the folder `nni/trial` of the installed SDK, without importing it.

    Raises:
        FailedPreconditionError: the library is not installed.
    """
    spec = find_spec("nni")
    if spec is None or spec.origin is None:
        raise FailedPreconditionError("the package nni is not installed beside the trial-runner")
    return Path(spec.origin).parent / "trial"


def open_work(folder: Path, code_user: CodeUser) -> None:
    """For a separate user of trials, create the work folder; let all users enter it and its parent.

    Raises:
        FailedPreconditionError: it cannot be created.
    """
    if code_user.uid is None:
        return
    try:
        folder.mkdir(mode=_ENTERED, parents=True, exist_ok=True)
        for place in (folder, folder.parent):
            found = place.stat()
            if found.st_uid == os.geteuid():
                place.chmod((stat.S_IMODE(found.st_mode) | _ENTERED) & ~stat.S_IWOTH)
    except OSError as error:
        raise FailedPreconditionError(f"{folder} cannot be used: {error}") from error


def write_tools(folder: Path, trial_sdk: Path, code_user: CodeUser = SAME_USER) -> Path:
    """Run the SDK's launcher to write the command `nni-trial` to `<folder>/bin`; return the folder.

    Args:
        folder: parent of that folder.
        trial_sdk: the library's trial side.
        code_user: account of trials.

    Raises:
        FailedPreconditionError: the folder cannot be written.
    """
    tools = folder / "bin"
    try:
        if code_user.uid is None:
            private_folder(tools)
        else:
            tools.mkdir(exist_ok=True)
        for name in (_COMMAND, f".{_COMMAND}.new"):  # the launcher's draft
            place_for_file(tools / name)
    except OSError as error:
        raise FailedPreconditionError(f"{tools} cannot be used: {error}") from error
    made = subprocess.run(
        [sys.executable, "-ISs", str(trial_sdk / "launcher.py"), str(tools)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise FailedPreconditionError(f"nni-trial cannot be written to {tools}: {made.stderr}")
    return tools
