"""Adapters of an OpenPAI of tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from svc_trial_runner.fleet.adapters.openpai.adapter import OpenpaiAdapter
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    FrontEndpoint,
    InstallationEndpoints,
)
from tests.support.local_platforms import NoBundles
from tests.support.openpai_server import TOKEN, USER, OpenpaiServer

ENDPOINTS = InstallationEndpoints("nats://127.0.0.1:4222", "127.0.0.1:50051")


class _OpenFront:
    """Front that is open and leads nowhere."""

    async def open(self) -> FrontEndpoint:
        """Return an address of documentation."""
        return FrontEndpoint("192.0.2.1:8081", "certificate")


def openpai_adapter(
    server: OpenpaiServer,
    folder: Path,
    pool: str,
    installation: str,
    token: str = TOKEN,
    secrets: Mapping[str, str] | None = None,
    **options: object,
) -> OpenpaiAdapter:
    """Return a new adapter of a pool, with further secrets and options."""
    section = {
        "host": server.address,
        "username": USER,
        "trialCpuNumber": 1,
        "trialMemorySize": "1gb",
        "pollIntervalSeconds": 0.05,
        **options,
    }
    own = {"token": token} if token else {}
    return OpenpaiAdapter(
        AdapterContext(
            installation,
            pool,
            PlatformSection("openpai", section, {**own, **(secrets or {})}),
            ENDPOINTS,
            NoBundles(),
            folder / "openpai",
            _OpenFront(),
        )
    )
