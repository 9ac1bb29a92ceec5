"""Packages of the images by hash: `python -m tests.support.image_requirements UV` writes them.

`services/*/requirements*.txt` have the versions of `constraints.txt` with the hashes of all files,
for all machines that the packages support.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SERVICES = ("compressor", "dispatcher", "manager", "nas", "trial-runner")
EXTRAS = (("nas", "nas"), ("trial-runner", "compression"), ("trial-runner", "nas"))
"""Images that a build argument gives the packages of an extra of the library."""
_EXTRA_OF_LIBRARY = {"compression": "onnx"}
"""Extra of the library by build argument, where they differ: `onnx` includes `compression`, and
steps of compression jobs export models."""
FLEET = ("trial-runner", "fleet")
"""Image of the fleet: that of the agent with the packages of platforms and front."""
FLEET_EXTRAS = "server,front,kubernetes,remote"
HEADER = "# Made by ./dev pins from pyproject.toml and constraints.txt.\n"
_SIBLINGS = {"nni": "sdk", "nni-proto": "proto", "nni-svc-common": "services/common"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)(?:\[([^\]]*)\])?")
_BUILDS_WHEELS = "setuptools"


def image_requirements(service: str) -> set[str]:
    """Return direct requirements of a service's image, its extra `server` included."""
    return {_BUILDS_WHEELS, *_required(f"services/{service}", "server")}


def extra_requirements(extra: str) -> set[str]:
    """Return what the library needs from other projects in an image with a build argument."""
    return set(_required("sdk", _EXTRA_OF_LIBRARY.get(extra, extra)))


def fleet_requirements() -> set[str]:
    """Return direct requirements of the fleet's image."""
    return {_BUILDS_WHEELS, *_required("services/trial-runner", FLEET_EXTRAS)}


def _required(folder: str, extras: str) -> Iterator[str]:
    project: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())[
        "project"
    ]
    optional = project.get("optional-dependencies", {})
    wanted = [*project["dependencies"]]
    for extra in filter(None, extras.split(",")):
        wanted += optional.get(extra, [])
    for requirement in wanted:
        match = _REQUIREMENT.match(requirement)
        assert match is not None, requirement
        sibling = _SIBLINGS.get(match[1])
        if sibling is None:
            yield requirement
        else:
            yield from _required(sibling, match[2] or "")


def write_requirements(uv: str) -> None:
    """Write the requirements of each image, with the program `uv`."""
    for service in SERVICES:
        _write("requirements.txt", service, image_requirements(service), uv)
    for service, extra in EXTRAS:
        wanted = image_requirements(service) | extra_requirements(extra)
        _write(f"requirements-{extra}.txt", service, wanted, uv)
    service, name = FLEET
    _write(f"requirements-{name}.txt", service, fleet_requirements(), uv)


def _write(name: str, service: str, wanted: set[str], uv: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
        file.write("\n".join(sorted(wanted)))
        file.flush()
        made = subprocess.run(
            [
                *(uv, "pip", "compile", "--quiet", "--no-config", "--native-tls"),
                *("--python-version", "3.11", "--universal", "--generate-hashes"),
                *("--no-header", "--no-annotate", "--constraint", "constraints.txt", file.name),
            ],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    (ROOT / "services" / service / name).write_text(HEADER + made)


if __name__ == "__main__":
    write_requirements(sys.argv[1])
