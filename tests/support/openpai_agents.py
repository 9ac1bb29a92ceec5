"""Adapters of an OpenPAI of tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from svc_trial_runner.fleet.adapters.openpai.adapter import END_LIMIT_S, OpenpaiAdapter
from svc_trial_runner.fleet.domain.agents import PlatformSection
from tests.support.local_platforms import front_context
from tests.support.openpai_server import TOKEN, USER, OpenpaiServer


def openpai_adapter(
    server: OpenpaiServer,
    folder: Path,
    pool: str,
    installation: str,
    token: str = TOKEN,
    secrets: Mapping[str, str] | None = None,
    *,
    end_limit_s: float = END_LIMIT_S,
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
        front_context(
            folder / "openpai",
            installation,
            pool,
            PlatformSection("openpai", section, {**own, **(secrets or {})}),
        ),
        end_limit_s,
    )
