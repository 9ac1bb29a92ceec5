"""A long experiment from elsewhere: opened from its folder, listed in pages, exported whole."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.finished_experiment import INTERMEDIATES, write_finished
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl, nnictl, shared_shape

__all__ = ["nnictl", "shared_shape"]  # fixtures

TRIALS = 1_200
"""More than a page of every kind of list."""
EXPERIMENT = "finished"
ORDERS = ("sequence", "metric", "start_time", "duration", "state")


@pytest.fixture
def opened(nnictl: Nnictl, shared_shape: LocalShape) -> str:
    """The experiment, open for reading; give the address of its REST."""
    folder = shared_shape.folder / EXPERIMENT
    if not folder.exists():
        write_finished(shared_shape.folder, EXPERIMENT, TRIALS)
    nnictl("view", EXPERIMENT, "--experiment_dir", folder, "--port", shared_shape.free_port())
    return f"{shared_shape.endpoint()['http']}/api/v1/nni/experiments/{EXPERIMENT}"


def pages(address: str, **query: object) -> Iterator[list[dict[str, Any]]]:
    """Return the pages of a list of trials by following their links."""
    with httpx.Client(trust_env=False, timeout=30) as client:
        answer = client.get(f"{address}/trial-jobs", params={"limit": 500, **query})  # type: ignore[dict-item] # plain values
        while True:
            yield answer.json()
            if "next" not in answer.links:
                return
            answer = client.get(httpx.URL(address).join(answer.links["next"]["url"]))


@pytest.mark.timeout(240)
def test_every_trial_is_on_exactly_one_page_in_every_order(opened: str) -> None:
    for order, descending in itertools.product(ORDERS, (False, True)):
        found = list(pages(opened, order=order, descending=descending))

        assert [len(page) for page in found] == [500, 500, 200], order
        assert len({trial["trialJobId"] for page in found for trial in page}) == TRIALS, order


@pytest.mark.timeout(240)
def test_best_trials_come_first(opened: str) -> None:
    (first, *_) = pages(opened, order="metric")

    values = [trial["finalMetricData"][0]["data"] for trial in first]
    assert values == sorted(values)


@pytest.mark.usefixtures("opened")
@pytest.mark.timeout(240)
def test_both_ways_of_showing_a_profile_say_the_same(nnictl: Nnictl) -> None:
    quick = nnictl("experiment", "show", EXPERIMENT, PYTHONPROFILEIMPORTTIME="1")
    ordinary = nnictl("experiment", "show", EXPERIMENT, "--json", PYTHONPROFILEIMPORTTIME="1")

    assert quick.stdout == ordinary.stdout
    assert json.loads(quick.stdout)["nextSequenceId"] == TRIALS
    assert {"grpc", "typer"} <= imported(ordinary.stderr)
    assert not {"grpc", "typer"} & imported(quick.stderr)
    assert len(imported(quick.stderr)) < len(imported(ordinary.stderr)) / 2


def imported(listing: str) -> set[str]:
    """Return the modules in what Python writes with PYTHONPROFILEIMPORTTIME."""
    lines = listing.splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


@pytest.mark.usefixtures("opened")
@pytest.mark.timeout(240)
def test_an_export_holds_every_trial_with_all_that_it_reported(
    nnictl: Nnictl, shared_shape: LocalShape
) -> None:
    file = shared_shape.folder / "all.json"

    nnictl("experiment", "export", EXPERIMENT, "-f", file, "--type", "json", "-i")

    rows = json.loads(file.read_text())
    assert len(rows) == TRIALS
    assert all(len(row["intermediate"]) == INTERMEDIATES for row in rows)
