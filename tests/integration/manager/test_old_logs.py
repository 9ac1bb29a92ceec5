"""Logs and archives of earlier versions, which this version must open."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nni.experiment.archive import CODE, Archive
from nni.version import __version__
from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.experiment.v1 import history_service_pb2 as pb
from svc_common.clock import SystemClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.adapters.event_file import read_records
from svc_manager.adapters.random_ids import RandomIds
from svc_manager.adapters.saved_folders import LocalSavedFolders
from svc_manager.usecases.archives import ArchiveDependencies, Archives
from tests.support.old_logs import HERE, summary_of, versions
from tests.support.simulation.replay import replay
from tests.unit.services.manager.world import World, world_on

NEEDED_KINDS = {
    "custom_trial_added",
    "trial_stop_requested",
    "data_imported",
    "budget_changed",
    "search_space_changed",
    "algorithm_requested",
    "metric_reported",
    "trial_ended",
}


@pytest.fixture(params=versions(), ids=lambda folder: str(folder.name))
def old_log(request: pytest.FixtureRequest) -> Path:
    """The folder of one version."""
    folder: Path = request.param
    return folder


def summary(old_log: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((old_log / "summary.json").read_text("utf-8"))
    return content


def test_there_is_a_log_and_it_tells_of_much() -> None:
    assert versions(), f"no version has kept a log in {HERE}"
    for folder in versions():
        kinds, counts = summary(folder)["kinds"], summary(folder)["counts"]
        assert kinds.keys() >= NEEDED_KINDS
        assert counts.keys() >= {"SUCCEEDED", "FAILED", "USER_CANCELED", "EARLY_STOPPED"}


def test_log_folds_to_the_state_of_its_own_version(old_log: Path) -> None:
    assert summary_of(old_log / "events.log") == without_draws(summary(old_log))


def without_draws(content: dict[str, Any]) -> dict[str, Any]:
    """Return a summary without what the algorithms of this version draw."""
    return {name: value for name, value in content.items() if name != "replay"}


def test_every_suggestion_of_the_log_of_this_version_is_drawn_again() -> None:
    verdict, differences = replay(read_records(HERE / __version__ / "events.log"))

    assert differences == []
    assert verdict.repeatable, verdict.reason
    assert verdict.equal == verdict.suggestions > 0
    assert verdict.generations == summary(HERE / __version__)["replay"]["generations"] > 1


def test_suggestions_before_what_an_algorithm_learns_from_today_are_drawn_again(
    old_log: Path,
) -> None:
    """Later ones may differ: of the kept logs, from the first failed trial on."""
    verdict, differences = replay(read_records(old_log / "events.log"))

    assert verdict.suggestions == summary(old_log)["replay"]["suggestions"]
    assert verdict.generations == summary(old_log)["replay"]["generations"]
    assert verdict.equal + len(differences) == verdict.suggestions
    assert verdict.equal > 0


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """An installation that knows no experiment."""
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        yield world


async def requests(
    archive: Archive, code_directory: Path
) -> AsyncIterator[pb.LoadExperimentRequest]:
    header = pb.LoadHeader(
        experiment_id=archive.manifest.experiment_id, trial_code_directory=str(code_directory)
    )
    yield pb.LoadExperimentRequest(header=header)
    for name in archive.manifest.files:
        if not name.startswith(CODE):
            for data, last in archive.pieces(name):
                piece = pb.FilePiece(name=name, data=data, last=last)
                yield pb.LoadExperimentRequest(piece=piece)


async def test_archive_loads_and_is_the_same_experiment(
    old_log: Path, world: World, tmp_path: Path
) -> None:
    ports = ArchiveDependencies(
        world.bus.events, InMemoryBlobStore(), LocalSavedFolders(), RandomIds(), SystemClock()
    )
    saves = Archives(world.manager.registry, ports, tmp_path / "experiments", "1.2.3")

    with Archive(old_log / "experiment.zip") as archive:
        archive.verify()
        assert "trial.py" in archive.manifest.code
        loaded = await saves.load(requests(archive, tmp_path / "code"))

    expected = summary(old_log)
    assert loaded.state == experiment_pb2.EXPERIMENT_STATE_STOPPED
    assert (loaded.id, loaded.best_trial_id) == (expected["id"], expected["bestTrial"])
    journal = Path(loaded.directory) / "db" / "events.log"
    here = summary_of(journal)
    for name in ("trials", "counts", "bestValue", "revision", "executionTimeMs"):
        assert here[name] == expected[name]
    assert here["kinds"].pop("experiment_moved") == 1
    assert here["kinds"] == expected["kinds"]
    trial_id = expected["bestTrial"]
    assert (Path(loaded.directory) / "trials" / trial_id / "trial.log").exists()
