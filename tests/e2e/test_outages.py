"""Cuts of power, and damaged or old data of the bus: nothing hangs, no trial is missing.

`tests.benchmarks.bench_chaos --outages` is the long version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.chaos import KillPlan
from tests.support.cut_disk import CutDisk, mounted_disk
from tests.support.local_shape import LocalShape
from tests.support.outages import (
    OlderCopy,
    Outage,
    cut_power,
    emptied_inbox,
    flipped_inbox,
    halved_consumers,
    lost_stream,
    run_with_outages,
    start_on_copy,
)

PLAN = KillPlan(trials=60, slots=4, kills=10, seed=20261122, timeout_s=240)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[CutDisk]:
    with mounted_disk(tmp_path) as made:
        yield made


@pytest.fixture
def shape_on_disk(disk: CutDisk, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalShape]:
    """Installation whose state and experiments are on the disk."""
    shape = LocalShape(disk.path / "user")
    shape.folder.mkdir()
    monkeypatch.setenv("HOME", str(shape.folder))
    monkeypatch.setenv("NNI_HOME", str(shape.home))
    try:
        yield shape
    finally:
        shape.stop()


@pytest.mark.timeout(420)
def test_experiment_is_whole_after_three_cuts_of_power(
    disk: CutDisk, shape_on_disk: LocalShape, tmp_path: Path
) -> None:
    outages = [Outage(due, cut_power(disk, due)) for due in (0, 20, 45)]

    outcome = run_with_outages(PLAN, shape_on_disk, tmp_path, outages)

    assert outcome.violations == []
    assert outcome.resumed == 0
    assert outcome.replay.equal == outcome.replay.suggestions >= PLAN.trials


@pytest.mark.timeout(420)
def test_cut_of_power_without_durability_leaves_an_experiment_that_goes_on(
    disk: CutDisk, shape_on_disk: LocalShape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_DURABILITY", "process")
    outage = Outage(40, cut_power(disk, 1), lambda _: disk.synchronise())

    outcome = run_with_outages(PLAN, shape_on_disk, tmp_path, [outage])

    assert outcome.status == "DONE"
    if not outcome.resumed:  # its log and its folder agree, or the log has more
        assert outcome.violations == []
    assert not any("trials instead of" in violation for violation in outcome.violations)


@pytest.mark.timeout(420)
def test_experiment_is_whole_on_a_copy_of_a_running_disk(
    disk: CutDisk, shape_on_disk: LocalShape, tmp_path: Path
) -> None:
    outages = [Outage(due, start_on_copy(disk, due)) for due in (10, 35)]

    outcome = run_with_outages(PLAN, shape_on_disk, tmp_path, outages)

    assert outcome.violations == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", [emptied_inbox, flipped_inbox, halved_consumers])
def test_experiment_is_whole_after_the_store_was_damaged(
    local_shape: LocalShape, tmp_path: Path, fault: Callable[[LocalShape], None]
) -> None:
    outcome = run_with_outages(PLAN, local_shape, tmp_path, [Outage(20, fault)])

    assert outcome.violations == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["INBOX", "TASKS"])
def test_experiment_is_whole_after_the_bus_came_back_without_a_stream(
    local_shape: LocalShape, tmp_path: Path, name: str
) -> None:
    outcome = run_with_outages(PLAN, local_shape, tmp_path, [Outage(20, lost_stream(name))])

    assert outcome.violations == []
    log = (local_shape.home / "log" / "manager.log").read_text()
    assert f"the bus has lost its streams {name}" in log


@pytest.mark.timeout(300)
def test_experiment_is_whole_after_an_older_copy_of_its_reports_came_back(
    local_shape: LocalShape, tmp_path: Path
) -> None:
    copy = OlderCopy(tmp_path / "copy", "INBOX")

    outcome = run_with_outages(PLAN, local_shape, tmp_path, [Outage(30, copy.put_back, copy.take)])

    assert outcome.violations == []


@pytest.mark.timeout(300)
def test_experiment_of_an_older_store_comes_back_from_its_folder(
    local_shape: LocalShape, tmp_path: Path
) -> None:
    copy = OlderCopy(tmp_path / "copy")

    outcome = run_with_outages(PLAN, local_shape, tmp_path, [Outage(30, copy.put_back, copy.take)])

    assert (outcome.status, outcome.resumed) == ("DONE", 1)
    assert not any("trials instead of" in violation for violation in outcome.violations)
    log = (local_shape.home / "log" / "manager.log").read_text()
    assert "log restored from the experiment's folder" in log
