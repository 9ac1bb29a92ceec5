"""axe-core, which finds violations of accessibility; without `./dev page`, npm fetches it once."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from svc_manager.web.listeners.page import PAGE_FOLDER
from tests.support.browser import Page

_PAGE: Final = PAGE_FOLDER.parents[2] / "webui"
_FETCH_TIMEOUT_S: Final = 120.0
_RUN: Final = """axe.run(document, {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
}).then(({ violations }) => violations.map((one) =>
  `${one.id}: ${one.help}: ${one.nodes.map((node) => node.target.join(' ')).slice(0, 3)}`))"""


def violations(page: Page) -> list[str]:
    """Return the accessibility violations that axe finds in what a page shows."""
    if not page.run("Boolean(window.axe)"):
        page.run(require_axe().read_text() + "; 0")
    found: list[str] = page.run(_RUN)
    return found


def require_axe() -> Path:
    """Return the script, or skip the test (fail if NNI_REQUIRE_SERVICES=1)."""
    found, reason = _found()
    if found is not None:
        return found
    if os.environ.get("NNI_REQUIRE_SERVICES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@cache
def _found() -> tuple[Path | None, str]:
    """Return the script, or None and the reason."""
    built = _PAGE / "node_modules" / "axe-core" / "axe.min.js"
    if built.exists():
        return built, ""
    npm = shutil.which("npm")
    if npm is None:
        return None, "axe-core is not here, and neither is npm to fetch it; `./dev page` gets both"
    try:
        return _fetched(npm), ""
    except (OSError, subprocess.SubprocessError) as error:
        printed = str(getattr(error, "stderr", None) or "")
        return None, f"axe-core is not here and npm cannot fetch it: {error}\n{printed}"


def _fetched(npm: str) -> Path:
    """Fetch the version that the page's developers have, into a folder that later runs reuse."""
    page = json.loads((_PAGE / "package.json").read_text("utf-8"))
    package = f"axe-core@{page['devDependencies']['axe-core']}"
    folder = Path(tempfile.gettempdir()) / f"nni-{package}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker fetches, others wait
        if not script.exists():
            command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]
            subprocess.run(
                command, timeout=_FETCH_TIMEOUT_S, check=True, capture_output=True, text=True
            )
    return script
