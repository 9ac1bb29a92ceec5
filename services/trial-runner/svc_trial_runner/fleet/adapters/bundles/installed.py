"""Distributions installed in this environment: those that an agent requires, and their files.

Those that are installed as editable are read from the folders of their packages.
"""

import csv
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from svc_trial_runner.fleet.domain.distributions import (
    WorkerTarget,
    is_needed,
    parse_requirement,
    runs_on,
)
from svc_trial_runner.fleet.ports import PlatformError

AGENT: Final = "nni-svc-trial-runner"
"""Distribution of the agent."""
_FILES_ONLY: Final = {"nni": frozenset({"nni-proto"})}
"""Distribution to those of its requirements that an agent uses: the trial API needs none."""
_OWN: Final = "nni"
_LEFT_OUT: Final = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
"""Files about the installation here."""
_NOT_RUN: Final = (".pyc", ".pyi", ".pyx", ".pxd", ".pxi")
_FOLDERS_LEFT_OUT: Final = frozenset({"__pycache__", "tests", "node_modules"})


@dataclass(frozen=True, slots=True)
class NeededDistribution:
    """Distribution that a bundle must have: name, and installed version or else a version rule."""

    name: str
    """Normalized."""
    version: str
    """As installed here; empty: it is not installed here."""
    rule: str = ""
    """Of versions, where it is not installed here."""
    installed: Distribution | None = field(default=None, repr=False)

    @property
    def is_own(self) -> bool:
        """True for a distribution of NNI, which is always copied from this environment."""
        return self.name == _OWN or self.name.startswith(f"{_OWN}-")

    @property
    def requirement(self) -> str:
        """The requirement for pip: the version installed in this environment."""
        return f"{self.name}=={self.version}" if self.version else f"{self.name}{self.rule}"


def needed_distributions(target: WorkerTarget, root: str = AGENT) -> list[NeededDistribution]:
    """Return all distributions that an agent needs on a worker, sorted; version "": not installed.

    Args:
        target: the worker's interpreter, by which markers are evaluated.
        root: distribution of the agent.
    """
    found: dict[str, NeededDistribution] = {}
    pending: list[tuple[str, frozenset[str], str]] = [(root, frozenset(), "")]
    seen: set[tuple[str, frozenset[str]]] = set()
    while pending:
        name, extras, rule = pending.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            found.setdefault(name, NeededDistribution(name, "", rule))
            continue
        found[name] = NeededDistribution(name, installed.version, installed=installed)
        for text in installed.requires or ():
            requirement = parse_requirement(text)
            if requirement is None or not is_needed(requirement, target, extras):
                continue
            if requirement.name in _FILES_ONLY.get(name, {requirement.name}):
                pending.append((requirement.name, requirement.extras, requirement.rule))
    return [found[name] for name in sorted(found)]


def can_be_copied(needed: NeededDistribution, target: WorkerTarget, here: WorkerTarget) -> bool:
    """Return whether installed files run on a worker: NNI's own always, others by their tags."""
    if needed.installed is None or not _recorded(needed.installed):
        return False
    if needed.is_own:
        return True
    lines = (needed.installed.read_text("WHEEL") or "").splitlines()
    tags = [line.partition(":")[2].strip() for line in lines if line.startswith("Tag:")]
    return any(runs_on(tag, target, here) for tag in tags)


def installed_files(needed: NeededDistribution) -> Iterator[tuple[str, Path]]:
    """Yield (name, path) of a distribution's files that agents need; raise if one is missing.

    Raises:
        PlatformError: files are missing, or it is not known which it has.
    """
    installed = needed.installed
    names = _recorded(installed) if installed else []
    if installed is None or not names:
        raise _missing(needed, "it has no list of its files")
    for name in names:
        parts = tuple(name.split("/"))
        if ".." in parts or "__editable__" in parts[-1] or not _is_wanted(parts):
            continue
        path = Path(str(installed.locate_file(name)))
        if not path.is_file():
            raise _missing(needed, f"{path} is missing")
        yield name, path
    if _is_editable(installed):
        for package in (installed.read_text("top_level.txt") or "").split():
            yield from _package_files(needed, package)


def _recorded(installed: Distribution) -> list[str]:
    """Return the files in a RECORD, missing ones as well; empty: there is no RECORD."""
    lines = (installed.read_text("RECORD") or "").splitlines()
    return [row[0] for row in csv.reader(lines) if row and not row[0].startswith("/")]


def _is_editable(installed: Distribution) -> bool:
    described = json.loads(installed.read_text("direct_url.json") or "{}")
    return bool(described.get("dir_info", {}).get("editable"))


def _package_files(needed: NeededDistribution, package: str) -> Iterator[tuple[str, Path]]:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise _missing(needed, f"its package {package} cannot be found")
    root = Path(next(iter(spec.submodule_search_locations)))
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _FOLDERS_LEFT_OUT)
        for name in sorted(names):
            path = Path(place, name)
            inner = (package, *path.relative_to(root).parts)
            if _is_wanted(inner) and path.is_file():
                yield "/".join(inner), path


def _is_wanted(parts: tuple[str, ...]) -> bool:
    name = parts[-1]
    if name.endswith(_NOT_RUN) or "__pycache__" in parts or name.startswith("."):
        return False
    return not (parts[0].endswith(".dist-info") and name in _LEFT_OUT)


def _missing(needed: NeededDistribution, reason: str) -> PlatformError:
    return PlatformError(
        f"the distribution {needed.name} cannot be packed for a worker: {reason}",
        f"install it again: pip install --force-reinstall --no-deps {needed.requirement}",
        permanent=True,
    )


def fingerprint(needed: NeededDistribution) -> str:
    """Return a text that changes when the files of an installed distribution do."""
    if needed.installed is None:
        return needed.requirement
    record = needed.installed.read_text("RECORD") or ""
    lines = [needed.name, needed.version, hashlib.sha256(record.encode()).hexdigest()]
    if _is_editable(needed.installed):
        for name, path in installed_files(needed):
            facts = path.stat()
            lines.append(f"{name} {facts.st_size} {facts.st_mtime_ns}")
    return "\n".join(lines)
