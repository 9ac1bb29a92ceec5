"""Archives of experiments between two installations, on buses in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.experiment.v1 import history_service_pb2 as pb
from nni_wire.limits import INLINE_VALUE_LIMIT_BYTES
from nni_wire.values import from_value, to_value
from svc_common.clock import SystemClock
from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.directory import DirectoryBlobStore
from svc_manager.adapters.random_ids import RandomIds
from svc_manager.adapters.saved_folders import LocalSavedFolders
from svc_manager.usecases.activation import NewExperiment, ReopenRequest
from svc_manager.usecases.archives import ArchiveDependencies, Archives
from svc_manager.usecases.experiments import ConfigChange
from tests.unit.services.manager.world import World, world_on

DONE = experiment_pb2.EXPERIMENT_STATE_DONE
STOPPED = experiment_pb2.EXPERIMENT_STATE_STOPPED


@dataclass
class Installation:
    """A world and its saves."""

    world: World
    blobs: DirectoryBlobStore
    saves: Archives

    async def save(self, experiment_id: str, *, with_files: bool = True) -> Saved:
        about, pieces = None, []
        async with aclosing(self.saves.save(experiment_id, with_files=with_files)) as messages:
            async for message in messages:
                if message.HasField("about"):
                    about = message.about
                else:
                    pieces.append(message.piece)
        assert about is not None
        return Saved(about, pieces)

    async def load(self, saved: Saved, **header: Any) -> experiment_pb2.Experiment:
        values = {"experiment_id": saved.about.experiment.id, "request_id": "load"} | header
        return await self.saves.load(requests(pb.LoadHeader(**values), saved.pieces))


@dataclass
class Saved:
    about: pb.SavedExperiment
    pieces: list[pb.FilePiece]

    def names(self) -> list[str]:
        return list(dict.fromkeys(piece.name for piece in self.pieces))


async def requests(
    header: pb.LoadHeader | None, pieces: Iterable[pb.FilePiece]
) -> AsyncIterator[pb.LoadExperimentRequest]:
    if header is not None:
        yield pb.LoadExperimentRequest(header=header)
    for piece in pieces:
        yield pb.LoadExperimentRequest(piece=piece)


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Installation]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path / "there") as world:
        yield installation(world)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Installation]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path / "here") as world:
        yield installation(world)


def installation(world: World, **limits: int) -> Installation:
    world.folder.mkdir(exist_ok=True)
    (world.folder / "trial.py").touch()
    blobs = DirectoryBlobStore(world.folder / "nni" / "blobs")
    ports = ArchiveDependencies(
        world.bus.events, blobs, LocalSavedFolders(), RandomIds(), SystemClock()
    )
    root = world.folder / "experiments"
    return Installation(
        world, blobs, Archives(world.manager.registry, ports, root, "1.2.3", **limits)
    )


async def finished(there: Installation, **config: Any) -> str:
    """Run an experiment to its end, and stop it."""
    world = there.world
    experiment_id = await world.create(**config)
    await world.wait_for_state(experiment_id, DONE)
    await world.experiments.stop(experiment_id)
    return experiment_id


async def trials_of(world: World, experiment_id: str) -> list[Any]:
    page = await world.experiments.export(experiment_id, include_intermediates=True)
    return [(t.trial_id, from_value(t.parameters), from_value(t.value)) for t in page.items]


async def test_a_loaded_experiment_is_the_same_one(there: Installation, here: Installation) -> None:
    experiment_id = await finished(there)

    loaded = await here.load(await there.save(experiment_id), trial_code_directory="/new/code")

    before = (await there.world.experiments.get(experiment_id)).experiment
    assert (loaded.id, loaded.state) == (experiment_id, STOPPED)
    assert loaded.config.trial_code_directory == "/new/code"
    assert loaded.directory == str(here.world.folder / "experiments" / experiment_id)
    same = ("created_at", "started_at", "ended_at", "trial_counts", "execution_time", "best_value")
    assert [getattr(loaded, name) for name in same] == [getattr(before, name) for name in same]
    ours, theirs = [await trials_of(x.world, experiment_id) for x in (here, there)]
    assert ours == theirs
    assert len(ours) == 5


async def test_a_loaded_experiment_goes_on(there: Installation, here: Installation) -> None:
    experiment_id = await finished(there)
    await here.load(await there.save(experiment_id))

    here.world.follow(experiment_id)
    await here.world.experiments.resume(ReopenRequest(experiment_id))
    await here.world.experiments.update(experiment_id, ConfigChange(max_trial_number=8))
    await here.world.wait_for_state(experiment_id, DONE)

    trials = await trials_of(here.world, experiment_id)
    assert len({trial_id for trial_id, _, _ in trials}) == 8


async def test_one_that_runs_is_cut_off_where_its_log_was_copied(
    there: Installation, here: Installation
) -> None:
    experiment_id = await there.world.create(max_trial_number=100_000)
    async with aclosing(there.world.experiments.follow_events(experiment_id)) as events:
        async for event in events:
            if event.event.HasField("trial_ended"):
                break

    loaded = await here.load(await there.save(experiment_id))

    assert loaded.state == STOPPED
    await there.world.experiments.stop(experiment_id)


async def test_files_travel_but_neither_secrets_nor_links(
    there: Installation, here: Installation, tmp_path: Path
) -> None:
    experiment_id = await finished(there)
    folder = there.world.folder / "experiments" / experiment_id
    (folder / "trials" / "a").mkdir(parents=True)
    (folder / "trials" / "a" / "stdout").write_bytes(b"x" * 600_000)
    (folder / "trials" / "a" / "empty").touch()
    (folder / "trials" / "a" / "link").symlink_to("/etc/passwd")

    saved = await there.save(experiment_id)
    loaded = await here.load(saved)

    assert "folder/environment.json" not in saved.names()
    assert "folder/trials/a/link" not in saved.names()
    placed = Path(loaded.directory)
    assert (placed / "trials" / "a" / "stdout").read_bytes() == b"x" * 600_000
    assert (placed / "trials" / "a" / "empty").read_bytes() == b""
    assert (placed / "db" / "events.log").exists()
    assert not list((here.world.folder / "experiments").glob(".loading-*"))
    assert all(len(piece.data) <= 256 * 1024 for piece in saved.pieces)


async def test_the_log_alone_is_enough(there: Installation, here: Installation) -> None:
    experiment_id = await finished(there)

    saved = await there.save(experiment_id, with_files=False)
    await here.load(saved)

    assert saved.names() == ["events.log"]
    assert len(await trials_of(here.world, experiment_id)) == 5


async def big_value(there: Installation) -> tuple[str, str, bytes]:
    """Finish an experiment with a large search space; give its id, the hash and the text."""
    world = there.world
    space = {"x": {"_type": "choice", "_value": ["n" * INLINE_VALUE_LIMIT_BYTES]}}
    config = world.config()
    config.search_space.CopyFrom(to_value(space))
    opened = await world.experiments.create(NewExperiment(config))
    experiment_id = opened.experiment.id
    world.follow(experiment_id)
    await world.wait_for_state(experiment_id, DONE)
    await world.experiments.stop(experiment_id)
    text = json.dumps(space).encode()
    return experiment_id, hashlib.sha256(text).hexdigest(), text


async def test_large_values_travel(there: Installation, here: Installation) -> None:
    experiment_id, digest, text = await big_value(there)

    saved = await there.save(experiment_id)
    loaded = await here.load(saved)

    assert f"values/{digest}" in saved.names()
    assert from_value(saved.about.experiment.config.search_space) == json.loads(text)
    assert loaded.id == experiment_id
    assert await here.blobs.get(f"sha256/{digest}") == text
    assert await here.blobs.exists(f"uploaded/{experiment_id}/{digest}")


async def test_a_large_value_that_is_missing_or_false_is_refused(
    there: Installation, here: Installation
) -> None:
    experiment_id, digest, _ = await big_value(there)
    saved = await there.save(experiment_id)
    name = f"values/{digest}"
    others = [piece for piece in saved.pieces if piece.name != name]

    with pytest.raises(InvalidArgumentError, match="must be in the archive"):
        await here.load(Saved(saved.about, others))
    false = pb.FilePiece(name=name, data=b"false", last=True)
    with pytest.raises(InvalidArgumentError, match="must have the hash in its name"):
        await here.load(Saved(saved.about, [*others, false]))

    await nothing_is_left(here, experiment_id)


async def nothing_is_left(here: Installation, experiment_id: str) -> None:
    root = here.world.folder / "experiments"
    assert not root.exists() or list(root.iterdir()) == []
    assert await here.world.bus.events.last(experiment_id) is None
    with pytest.raises(NotFoundError):
        await here.world.manager.registry.find(experiment_id)


async def test_an_id_that_is_taken_is_refused_with_the_remedy(there: Installation) -> None:
    experiment_id = await finished(there)

    with pytest.raises(FailedPreconditionError, match=f"experiment delete {experiment_id}"):
        await there.load(await there.save(experiment_id))

    assert len(await trials_of(there.world, experiment_id)) == 5


async def test_a_load_that_is_repeated_gets_the_same_answer(
    there: Installation, here: Installation
) -> None:
    saved = await there.save(await finished(there))

    first = await here.load(saved, request_id="again")
    second = await here.load(saved, request_id="again")

    assert second == first


async def test_a_folder_in_the_way_is_refused_and_kept(
    there: Installation, here: Installation
) -> None:
    experiment_id = await finished(there)
    taken = here.world.folder / "experiments" / experiment_id
    taken.mkdir(parents=True)
    (taken / "mine").touch()

    with pytest.raises(FailedPreconditionError, match="remove it, or choose another folder"):
        await here.load(await there.save(experiment_id))

    assert [path.name for path in taken.iterdir()] == ["mine"]
    assert await here.world.bus.events.last(experiment_id) is None


Break = Callable[[list[pb.FilePiece]], list[pb.FilePiece]]


def cut(pieces: list[pb.FilePiece]) -> list[pb.FilePiece]:
    pieces[0].data = pieces[0].data[:-1]
    return pieces


def flip(pieces: list[pb.FilePiece]) -> list[pb.FilePiece]:
    data = bytearray(pieces[0].data)
    data[len(data) // 2] ^= 1
    pieces[0].data = bytes(data)
    return pieces


def named(name: str) -> Break:
    return lambda pieces: [*pieces, pb.FilePiece(name=name, last=True)]


@pytest.mark.parametrize(
    ("broken", "match"),
    [
        (cut, "whole records"),
        (flip, "whole records"),
        (lambda pieces: pieces[1:], r"events\.log must be there"),
        (named("folder/../../evil"), "must be events.log"),
        (named("folder/environment.json"), "must be events.log"),
        (named("/etc/cron.d/evil"), "must be events.log"),
        (named("events.log"), "each once"),
        (lambda pieces: [*pieces, pb.FilePiece(name="folder/x")], "come to its end"),
        (
            lambda pieces: [pb.FilePiece(name="folder/x"), *pieces],
            "one file after the other",
        ),
        (
            lambda _: [pb.FilePiece(name="events.log", data=b"junk", last=True)],
            "must be an event log",
        ),
    ],
)
async def test_a_broken_archive_is_refused_and_leaves_nothing(
    there: Installation, here: Installation, broken: Break, match: str
) -> None:
    experiment_id = await finished(there)
    saved = await there.save(experiment_id, with_files=False)

    with pytest.raises(InvalidArgumentError, match=match):
        await here.load(Saved(saved.about, broken(saved.pieces)))

    await nothing_is_left(here, experiment_id)


async def test_the_log_of_another_experiment_is_refused(
    there: Installation, here: Installation
) -> None:
    saved = await there.save(await finished(there))

    with pytest.raises(InvalidArgumentError, match="must be the log of experiment other"):
        await here.load(saved, experiment_id="other")


@pytest.mark.parametrize("experiment_id", ["", "../x", "a/b", "a.b"])
async def test_an_id_that_is_none_is_refused(here: Installation, experiment_id: str) -> None:
    with pytest.raises(InvalidArgumentError, match="experiment_id"):
        await here.saves.load(requests(pb.LoadHeader(experiment_id=experiment_id), []))


@pytest.mark.parametrize("field", ["experiment_working_directory", "trial_code_directory"])
async def test_paths_must_be_absolute(there: Installation, here: Installation, field: str) -> None:
    saved = await there.save(await finished(there))

    with pytest.raises(InvalidArgumentError, match=field):
        await here.load(saved, **{field: "relative"})


async def test_the_header_comes_first(here: Installation) -> None:
    with pytest.raises(InvalidArgumentError, match="header"):
        await here.saves.load(requests(None, [pb.FilePiece(name="events.log")]))
    with pytest.raises(InvalidArgumentError, match="header"):
        await here.saves.load(requests(None, []))


async def test_too_much_is_refused(there: Installation, here: Installation) -> None:
    saved = await there.save(await finished(there))
    small = installation(here.world, size_limit_bytes=100)

    with pytest.raises(ResourceExhaustedError, match="may have"):
        await small.load(saved)


async def test_an_unknown_experiment_cannot_be_saved(here: Installation) -> None:
    with pytest.raises(NotFoundError):
        await here.save("unknown1")


async def test_a_load_that_was_cut_in_two_is_no_experiment_and_can_be_repeated(
    there: Installation, here: Installation
) -> None:
    experiment_id = await finished(there)
    saved = await there.save(experiment_id)
    async with aclosing(there.world.bus.events.read(experiment_id)) as messages:
        first = await anext(messages)
    await here.world.bus.events.append(
        experiment_id, first.payload, expected_sequence=0, epoch=1, append_id="loading-0"
    )

    with pytest.raises(NotFoundError):
        await here.world.manager.registry.find(experiment_id)
    loaded = await here.load(saved)

    assert loaded.state == STOPPED
    assert len(await trials_of(here.world, experiment_id)) == 5


async def test_what_trials_wrote_on_other_machines_travels(
    there: Installation, here: Installation
) -> None:
    experiment_id = await finished(there)
    key = f"output/{experiment_id}/abcde/1/stdout"
    await there.blobs.put_named(key, b"s" * 300_000)

    saved = await there.save(experiment_id)
    await here.load(saved)

    assert "outputs/abcde/1/stdout" in saved.names()
    assert await here.blobs.get(key) == b"s" * 300_000
    assert (
        "outputs/abcde/1/stdout" not in (await there.save(experiment_id, with_files=False)).names()
    )
