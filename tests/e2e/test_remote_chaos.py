"""Faults of machines, connections and services while trials run over SSH.

`tests.benchmarks.bench_platforms` is the long version.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.required_platforms import (
    is_left_to_platform_tests,
    leave_to_platform_tests,
    reason_without_openssh,
    require_platform,
)

if is_left_to_platform_tests():
    leave_to_platform_tests()
if MISSING := reason_without_openssh():
    require_platform(MISSING)

from tests.support.chaos import KillPlan
from tests.support.local_shape import LocalShape, local_shape
from tests.support.remote_chaos import FLEET, SESSION, STOP, run_remote_chaos
from tests.support.ssh_workers import ssh_workers

__all__ = ["local_shape"]  # a fixture

FEW = (SESSION, STOP, FLEET)
"""Faults of the way to the machines: that an agent was killed is noticed after half a minute."""


@pytest.mark.timeout(300)
def test_trials_over_ssh_survive_faults_of_the_connection_and_are_counted_once(
    local_shape: LocalShape, tmp_path: Path
) -> None:
    plan = KillPlan(16, 4, len(FEW), seed=20261127, timeout_s=240, victims=FEW)

    with ssh_workers(tmp_path / "workers", 2) as workers:
        outcome = run_remote_chaos(plan, local_shape, workers, tmp_path, stop_s=2.0)

    assert outcome.violations == []
    assert set(outcome.killed) == set(FEW)
