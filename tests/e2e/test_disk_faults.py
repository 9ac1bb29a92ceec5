"""Disks that fail in mid-run and are mended: nothing is lost, and it goes on by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.disk_faults import DiskPlan, Fault, Place, run_with_fault
from tests.support.local_shape import LocalShape, local_shape

__all__ = ["local_shape"]  # a fixture

REASONS = {
    (Place.EXPERIMENT, Fault.FULL): "No space left on device",
    (Place.EXPERIMENT, Fault.READ_ONLY): "Read-only file system",
    (Place.HOME, Fault.FULL): "the bus's disk is full: 0 MB are free",
    (Place.HOME, Fault.READ_ONLY): "the bus's disk cannot be written: Read-only file system",
    (Place.BUS, Fault.FULL): "the bus's disk is full: 0 MB are free",
    (Place.BUS, Fault.READ_ONLY): "the bus's disk cannot be written: Read-only file system",
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.value)
@pytest.mark.parametrize("place", list(Place), ids=lambda place: place.value)
def test_an_experiment_outlives_a_disk_that_fails_and_is_mended(
    local_shape: LocalShape, tmp_path: Path, place: Place, fault: Fault
) -> None:
    plan = DiskPlan(place, fault, timeout_s=120)

    outcome = run_with_fault(plan, local_shape, tmp_path)

    assert outcome.violations == []
    assert REASONS[place, fault] in outcome.reason
    assert plan.trials // 3 <= outcome.ended_before < plan.trials
