"""Contexts of adapters whose fleet is on this machine, and a command in place of an agent."""

import sys
from collections.abc import Mapping
from pathlib import Path

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext, FrontEndpoint, InstallationEndpoints

SLEEPER = (sys.executable, "-S", "-c", "import time; time.sleep(1_000_000)")
"""It runs until it is ended, and needs neither bus nor manager."""
ENDPOINTS = InstallationEndpoints("nats://127.0.0.1:4222", "127.0.0.1:50051")


class NoBundles:
    """Store of bundles that has none."""

    async def bundle(self, python: tuple[int, int], platform_tag: str) -> Path:
        raise AssertionError((python, platform_tag))


class OpenFront:
    """Front that is open and leads nowhere."""

    async def open(self) -> FrontEndpoint:
        """Return an address of documentation."""
        return FrontEndpoint("192.0.2.1:8081", "certificate")


def front_context(
    folder: Path, installation: str, pool: str, section: PlatformSection
) -> AdapterContext:
    """Return the context of an adapter whose agents come in by an open front."""
    return AdapterContext(installation, pool, section, ENDPOINTS, NoBundles(), folder, OpenFront())


def local_context(
    folder: Path, installation: str, pool: str, options: Mapping[str, object] | None = None
) -> AdapterContext:
    """Return the context of an adapter; all pools share the folder."""
    section = PlatformSection("local", options or {})
    endpoints = InstallationEndpoints("nats://127.0.0.1:1", "127.0.0.1:2")
    return AdapterContext(installation, pool, section, endpoints, NoBundles(), folder, NoFront())
