"""Options of a custom training service's section that concern its agents, read once."""

import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from svc_trial_runner.fleet.adapters.bundles.worker_commands import MINIMUM_PYTHON
from svc_trial_runner.fleet.domain.agents import PlatformProblem, PlatformSection
from svc_trial_runner.fleet.domain.section_secrets import with_secrets
from svc_trial_runner.fleet.domain.section_values import POLL_S, poll_problems, text_lines

_VERSION: Final = re.compile(r"3\.\d{1,3}\Z")
_IMAGE_PLATFORM: Final = "manylinux_2_17"
"""Wheels for jobs: their C library is not known, and this old one is enough everywhere."""
_MOST_POLL_S: Final = 1e6


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Options of a section for its agents: Python of the jobs, reuse, setup lines, interval."""

    python: str
    """Interpreter of the jobs."""
    python_version: tuple[int, int]
    """Major and minor version of that interpreter."""
    platform_tag: str
    """Of the wheels for the jobs."""
    python_path: str
    setup_lines: tuple[str, ...]
    poll_interval_s: float
    reuse_mode: bool
    """False: an agent ends after one trial."""


def parse_options(section: Mapping[str, object]) -> ServiceOptions:
    """Return the options of a section; a value of a wrong type counts as not given.

    Without options the jobs have the Python version and the processor of this machine.
    """
    version = section.get("pythonVersion")
    return ServiceOptions(
        python=_text(section, "python") or "python3",
        python_version=_version(version) or (sys.version_info[0], sys.version_info[1]),
        platform_tag=_text(section, "platformTag") or f"{_IMAGE_PLATFORM}_{platform.machine()}",
        python_path=_text(section, "pythonPath"),
        setup_lines=text_lines(section.get("setupLines")) or (),
        poll_interval_s=_interval_s(section.get("pollIntervalSeconds")),
        reuse_mode=section.get("reuseMode") is not False,
    )


def option_problems(section: Mapping[str, object]) -> list[PlatformProblem]:
    """Return problems of poll interval and `pythonVersion` in a section."""
    problems = poll_problems(parse_options(section).poll_interval_s)
    version = section.get("pythonVersion")
    if version is not None and _version(version) is None:
        least = ".".join(map(str, MINIMUM_PYTHON))
        rule = f"must be a version >= {least}, as text such as '{least}'"
        problems.append(PlatformProblem("pythonVersion", rule, repr(version)[:80]))
    return problems


def whole_section(section: PlatformSection) -> dict[str, Any]:
    """Return the options of a section by name, with their secret values."""
    secrets = section.secrets
    own = {name: value for name, value in secrets.items() if not {".", "["} & {*name}}
    inner = {name: with_secrets(value, name, secrets) for name, value in section.options.items()}
    return {**inner, **own}


def _version(value: object) -> tuple[int, int] | None:
    if not isinstance(value, str) or not _VERSION.match(value):
        return None
    major, minor = map(int, value.split("."))
    return (major, minor) if (major, minor) >= MINIMUM_PYTHON else None


def _interval_s(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return POLL_S
    return float(value) if abs(value) <= _MOST_POLL_S else POLL_S  # NaN is not, either


def _text(section: Mapping[str, object], name: str) -> str:
    value = section.get(name)
    return value.strip() if isinstance(value, str) else ""
