"""Contexts of the platform `local`, and a command in place of an agent."""

import sys
from collections.abc import Mapping
from pathlib import Path

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext, InstallationEndpoints

SLEEPER = (sys.executable, "-S", "-c", "import time; time.sleep(1_000_000)")
"""It runs until it is ended, and needs neither bus nor manager."""


class NoBundles:
    """Store of bundles that has none."""

    async def bundle(self, python: tuple[int, int], platform_tag: str) -> Path:
        raise AssertionError((python, platform_tag))


def local_context(
    folder: Path, installation: str, pool: str, options: Mapping[str, object] | None = None
) -> AdapterContext:
    """Return the context of an adapter; all pools share the folder."""
    section = PlatformSection("local", options or {})
    endpoints = InstallationEndpoints("nats://127.0.0.1:1", "127.0.0.1:2")
    return AdapterContext(installation, pool, section, endpoints, NoBundles(), folder, NoFront())
