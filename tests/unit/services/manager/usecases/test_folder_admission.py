"""Attacks of callers and trials on the files of the manager's machine."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as service_pb
from nni_proto.experiment.v1 import history_service_pb2 as history_pb
from nni_wire.folders import ANNOTATED_CODE_FOLDER
from nni_wire.values import to_value
from svc_common.access.current_call import audit_folder, is_owner, serving
from svc_common.access.roles import SERVICES_NAME, Caller, Role
from svc_common.clock import SystemClock
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.experiment_files import ExperimentRoots
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.adapters.event_file import EVENT_FILE, EventFile, read_records
from svc_manager.adapters.random_ids import RandomIds
from svc_manager.adapters.saved_folders import LocalSavedFolders
from svc_manager.event_log.file_format import MAGIC, record_of
from svc_manager.usecases.activation import ReopenRequest
from svc_manager.usecases.archive_names import EVENTS
from svc_manager.usecases.archives import ArchiveDependencies, Archives
from svc_manager.usecases.folder_admission import FolderAdmission
from tests.unit.services.manager.world import World, world_on

DONE = experiment_pb2.EXPERIMENT_STATE_DONE
USER = Caller("uma", Role.USER, "token")
ADMIN = Caller("ada", Role.ADMIN, "token")
OWNER = Caller(SERVICES_NAME, Role.ADMIN, "token")
SECRET = "the manager's key"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path / "machine") as made:
        (tmp_path / "machine" / "code").mkdir(parents=True)
        yield made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Folder below no root, with a secret."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "tls.key").write_text(SECRET)
    return folder


def untouched(outside: Path) -> bool:
    files = [path.name for path in outside.rglob("*")]
    return files == ["tls.key"] and (outside / "tls.key").read_text() == SECRET


async def stopped(world: World, *, done: bool = False, **config: Any) -> tuple[str, Path]:
    """Create an experiment, and stop it, if need be at its end; return its id and folder."""
    experiment_id = await world.create(**config)
    if done:
        await world.wait_for_state(experiment_id, DONE)
    await world.experiments.stop(experiment_id)
    return experiment_id, world.folder / "experiments" / experiment_id


def archives(world: World) -> Archives:
    ports = ArchiveDependencies(
        world.bus.events,
        InMemoryBlobStore(),
        LocalSavedFolders(ExperimentRoots([world.folder])),
        RandomIds(),
        SystemClock(),
        FolderAdmission([world.folder]),
    )
    return Archives(world.manager.registry, ports, world.folder / "experiments", "1.2.3")


async def saved(world: World, experiment_id: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    async for piece in archives(world).save(experiment_id, with_files=True):
        found[piece.piece.name] = found.get(piece.piece.name, b"") + piece.piece.data
    return found


async def log_of(world: World, experiment_id: str) -> str:
    feed = world.experiments.follow_logs(experiment_id, service_pb.LOG_SOURCE_MANAGER, follow=False)
    return "".join([piece.data.decode() async for piece in feed])


@pytest.mark.parametrize("caller", [USER, ADMIN])
async def test_only_the_owner_creates_folders_below_no_root(
    world: World, outside: Path, caller: Caller
) -> None:
    with serving(caller), pytest.raises(InvalidArgumentError, match="must be a folder below"):
        await world.create(experiment_working_directory=str(outside))
    with pytest.raises(InvalidArgumentError, match="must be a folder below"):
        await world.create(experiment_working_directory=str(outside))  # in no call at all
    assert untouched(outside)

    with serving(OWNER):
        experiment_id = await world.create(experiment_working_directory=str(outside))

    assert (outside / experiment_id / "db" / "events.log").is_file()


@pytest.mark.parametrize("name", ["", "..", "root/..", "root/../../outside", "\0"])
async def test_path_out_of_a_root_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "root").mkdir()
    admission = FolderAdmission([tmp_path / "root"])

    with serving(USER), pytest.raises(InvalidArgumentError):
        admission.check("field", f"{tmp_path}/{name}")
    with pytest.raises(InvalidArgumentError, match="absolute"):
        admission.check("field", "root")


def test_root_may_be_named_by_its_link_or_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to("root")
    admission = FolderAdmission([tmp_path / "link"])

    for name in ("link", "root", "root/exp"):
        assert admission.check("field", str(tmp_path / name)) == tmp_path / name


@pytest.mark.parametrize("method", ["view", "resume"])
async def test_no_folder_without_the_log_becomes_the_folder_of_an_experiment(
    world: World, outside: Path, method: str
) -> None:
    experiment_id, folder = await stopped(world)
    other, _ = await stopped(world)
    inside = world.folder / "experiments" / other
    reopen = getattr(world.experiments, method)

    for caller, victim in ((USER, outside), (USER, inside), (OWNER, outside), (OWNER, inside)):
        with serving(caller), pytest.raises(InvalidArgumentError, match="experiment_directory"):
            await reopen(ReopenRequest(experiment_id, experiment_directory=str(victim)))

    view = (await world.experiments.get(experiment_id)).experiment
    assert view.directory == str(folder)
    assert untouched(outside)
    assert not any(SECRET.encode() in data for data in (await saved(world, experiment_id)).values())


async def test_experiment_moves_to_a_copy_of_its_folder(world: World, outside: Path) -> None:
    experiment_id, folder = await stopped(world)
    shutil.copytree(folder, outside / "copy")
    request = ReopenRequest(experiment_id, experiment_directory=str(outside / "copy"))

    with serving(USER), pytest.raises(InvalidArgumentError, match="below"):
        await world.experiments.view(request)
    with serving(OWNER) as call:
        opened = await world.experiments.view(request)

    assert opened.experiment.directory == str(outside / "copy")
    assert call.folders == [str(folder), str(outside / "copy")]


async def test_resumption_does_not_follow_a_linked_environment(world: World, outside: Path) -> None:
    experiment_id, folder = await stopped(world)
    (folder / "environment.json").unlink()
    (folder / "environment.json").symlink_to(outside / "tls.key")

    await world.experiments.resume(ReopenRequest(experiment_id, environment={"A": "b"}))

    assert untouched(outside)
    assert not (folder / "environment.json").is_symlink()


@pytest.mark.parametrize("name", ["", "db", "log"])
async def test_no_linked_folder_of_an_experiment_is_used(
    world: World, outside: Path, name: str
) -> None:
    experiment_id, folder = await stopped(world)
    (outside / "nnimanager.log").write_text(SECRET)
    shutil.rmtree(folder / name)
    (folder / name).symlink_to(outside)
    if not name:
        (outside / "log").mkdir()
        (outside / "log" / "nnimanager.log").write_text(SECRET)

    await world.manager.registry.forget(experiment_id)
    with suppress(InvalidArgumentError):  # the environment cannot be written
        await world.experiments.resume(ReopenRequest(experiment_id, environment={"A": "b"}))
        await world.experiments.stop(experiment_id)
    texts = list((await saved(world, experiment_id)).values())
    try:
        texts.append((await log_of(world, experiment_id)).encode())
    except NotFoundError:
        texts.append(b"")
    await world.experiments.delete(experiment_id)

    assert not any(SECRET.encode() in text for text in texts)
    assert (outside / "tls.key").read_text() == SECRET
    assert (outside / "nnimanager.log").read_text() == SECRET
    assert not (outside / "environment.json").exists()
    assert not (outside / "events.log").exists()


async def test_deletion_spares_a_folder_with_another_log(world: World) -> None:
    experiment_id, folder = await stopped(world)
    _, other = await stopped(world)
    shutil.rmtree(folder)
    shutil.copytree(other, folder)

    await world.experiments.delete(experiment_id)

    assert (folder / "db" / "events.log").is_file()
    assert (other / "db" / "events.log").is_file()


async def test_deletion_removes_links_and_not_what_they_lead_to(
    world: World, outside: Path
) -> None:
    experiment_id, folder = await stopped(world)
    (folder / "trials" / "link").symlink_to(outside)

    with serving(USER) as call:
        await world.experiments.delete(experiment_id)

    assert not folder.exists()
    assert untouched(outside)
    assert call.folders == [str(folder)]


@pytest.mark.parametrize("name", ["..", "../../outside"])
async def test_deletion_spares_what_a_code_directory_leads_to(
    world: World, outside: Path, name: str
) -> None:
    annotated = world.folder / "nni" / ANNOTATED_CODE_FOLDER
    annotated.mkdir(parents=True)
    (world.folder / "nni" / "state").touch()
    (world.folder / "outside").mkdir()
    experiment_id, _ = await stopped(world, trial_code_directory=f"{annotated}/{name}")

    await world.experiments.delete(experiment_id)

    assert (world.folder / "nni" / "state").exists()
    assert (world.folder / "outside").exists()
    assert untouched(outside)


async def test_deletion_spares_the_code_of_another_experiment(world: World) -> None:
    copy = world.folder / "nni" / ANNOTATED_CODE_FOLDER / "copy"
    copy.mkdir(parents=True)
    first, _ = await stopped(world, trial_code_directory=str(copy))
    second, _ = await stopped(world, trial_code_directory=str(copy))

    await world.experiments.delete(first)
    assert copy.is_dir()
    await world.experiments.delete(second)

    assert not copy.exists()


def forged(folder: Path, target: Path, **changes: str) -> None:
    """Copy the log of a folder, with other texts in its events."""
    (target / "db").mkdir(parents=True)
    (target / "log").mkdir()
    file = EventFile(target / EVENT_FILE)
    for sequence, payload in read_records(folder / EVENT_FILE):
        batch = event_pb2.EventBatch.FromString(payload)
        for event in batch.events:
            kind = event.WhichOneof("kind")
            message = getattr(event, kind or "")
            for name, text in changes.items():
                if name in message.DESCRIPTOR.fields_by_name:
                    setattr(message, name, text)
        file.append(sequence, batch.SerializeToString())
    file.close()


async def test_forged_log_cannot_choose_the_folder_of_an_experiment(
    world: World, outside: Path
) -> None:
    experiment_id, folder = await stopped(world)
    (outside / "db").mkdir()
    forged(folder, world.folder / "forged", directory=str(outside))
    await world.experiments.delete(experiment_id)

    request = ReopenRequest(experiment_id, experiment_directory=str(world.folder / "forged"))
    opened = await world.experiments.view(request)
    await world.experiments.stop(experiment_id)

    assert opened.experiment.directory == str(world.folder / "forged")
    assert list((outside / "db").iterdir()) == []


async def test_forged_log_cannot_name_trials_as_paths(world: World) -> None:
    experiment_id, folder = await stopped(world, done=True)
    forged(folder, world.folder / "forged", trial_id="../../other")
    await world.experiments.delete(experiment_id)

    request = ReopenRequest(experiment_id, experiment_directory=str(world.folder / "forged"))
    with pytest.raises(InvalidArgumentError):
        await world.experiments.view(request)
    with pytest.raises(NotFoundError):
        await world.experiments.get(experiment_id)


def with_storage(event: event_pb2.Event, place: Path) -> None:
    """Give the configuration of a first event a shared storage at a folder."""
    section = {
        "storageType": "NFS",
        "localMountPoint": str(place),
        "remoteMountPoint": "data",
        "localMounted": "nnimount",
        "nfsServer": "10.0.0.9",
        "exportedDirectory": "/data",
    }
    config = event.experiment_created.config
    del config.training_services[:]
    config.training_services.add(platform="remote", options=to_value({"sharedStorage": section}))


def test_platforms_share_one_storage(tmp_path: Path) -> None:
    here, elsewhere = event_pb2.Event(), event_pb2.Event()
    with_storage(here, tmp_path / "here")
    with_storage(elsewhere, tmp_path.parent)
    config = here.experiment_created.config
    config.training_services.extend(elsewhere.experiment_created.config.training_services)

    with pytest.raises(InvalidArgumentError, match="sharedStorage must be the same"):
        FolderAdmission([tmp_path]).check_storage(config)


def with_storage_in_log(folder: Path, target: Path, place: Path) -> None:
    """Copy the log of a folder, with a shared storage in its configuration."""
    (target / "db").mkdir(parents=True)
    (target / "log").mkdir()
    file = EventFile(target / EVENT_FILE)
    for sequence, payload in read_records(folder / EVENT_FILE):
        batch = event_pb2.EventBatch.FromString(payload)
        for event in batch.events:
            if event.HasField("experiment_created"):
                with_storage(event, place)
        file.append(sequence, batch.SerializeToString())
    file.close()


async def test_forged_log_cannot_choose_where_a_shared_storage_is_mounted(
    world: World, outside: Path
) -> None:
    experiment_id, folder = await stopped(world)
    with_storage_in_log(folder, world.folder / "forged", outside)
    await world.experiments.delete(experiment_id)

    request = ReopenRequest(experiment_id, experiment_directory=str(world.folder / "forged"))
    with (
        serving(USER),
        pytest.raises(InvalidArgumentError, match=r"localMountPoint must be"),
    ):
        await world.experiments.view(request)
    with pytest.raises(NotFoundError):
        await world.experiments.get(experiment_id)

    with serving(OWNER):
        opened = await world.experiments.view(request)
    assert opened.experiment.directory == str(world.folder / "forged")


async def test_loaded_archive_cannot_choose_where_a_shared_storage_is_mounted(
    world: World, outside: Path
) -> None:
    experiment_id, folder = await stopped(world)
    with_storage_in_log(folder, world.folder / "forged", outside)
    await world.experiments.delete(experiment_id)
    forged_log = MAGIC + b"".join(
        record_of(sequence, payload)
        for sequence, payload in read_records(world.folder / "forged" / EVENT_FILE)
    )

    async def requests() -> AsyncIterator[history_pb.LoadExperimentRequest]:
        yield history_pb.LoadExperimentRequest(
            header=history_pb.LoadHeader(
                experiment_id=experiment_id,
                experiment_working_directory=str(world.folder / "experiments"),
            )
        )
        piece = history_pb.FilePiece(name=EVENTS, data=forged_log, last=True)
        yield history_pb.LoadExperimentRequest(piece=piece)

    with (
        serving(USER),
        pytest.raises(InvalidArgumentError, match=r"localMountPoint must be"),
    ):
        await archives(world).load(requests())
    assert untouched(outside)
    assert not folder.exists()


async def test_user_loads_no_experiment_below_no_root(world: World, outside: Path) -> None:
    experiment_id, _ = await stopped(world)
    pieces = [piece async for piece in archives(world).save(experiment_id, with_files=True)]
    await world.experiments.delete(experiment_id)

    async def requests() -> AsyncIterator[history_pb.LoadExperimentRequest]:
        yield history_pb.LoadExperimentRequest(
            header=history_pb.LoadHeader(
                experiment_id=experiment_id, experiment_working_directory=str(outside)
            )
        )
        for piece in pieces[1:]:
            yield history_pb.LoadExperimentRequest(piece=piece.piece)

    with serving(USER), pytest.raises(InvalidArgumentError, match="must be a folder below"):
        await archives(world).load(requests())
    assert untouched(outside)
    with serving(OWNER):
        loaded = await archives(world).load(requests())

    assert loaded.directory == str(outside / experiment_id)


def test_only_the_token_of_the_installation_makes_an_owner() -> None:
    found = []
    for caller in (
        USER,
        ADMIN,
        OWNER,
        replace(OWNER, by="certificate"),
        replace(USER, name=OWNER.name),
    ):
        with serving(caller):
            found.append(is_owner())

    assert found == [False, False, True, False, False]
    assert not is_owner()


def test_folder_of_no_call_is_in_no_record() -> None:
    audit_folder("/somewhere")
    with serving(USER) as call:
        audit_folder("/a")
        audit_folder("/a")

    assert call.folders == ["/a"]


def on_platform(options: dict[str, Any]) -> config_pb2.ExperimentConfig:
    service = config_pb2.TrainingServiceConfig(platform="remote", options=to_value(options))
    return config_pb2.ExperimentConfig(training_services=[service])


@pytest.mark.parametrize(
    "options",
    [
        {"kubeconfig": "/data/mine/kubeconfig"},
        {"ssh_key_file": "/home/ada/.ssh/id_ed25519"},
        {"machineList": [{"host": "h", "sshKeyFile": "/home/ada/.ssh/id_ed25519"}]},
        {"localStorageMountPoint": "/etc"},
    ],
)
def test_user_names_no_file_of_the_services_machine_in_a_platform(options: dict[str, Any]) -> None:
    admission, config = FolderAdmission([Path("/data")]), on_platform(options)

    with serving(USER), pytest.raises(InvalidArgumentError, match="administrators only"):
        admission.check_storage(config)


@pytest.mark.parametrize("caller", [ADMIN, OWNER])
def test_administrator_names_files_of_the_services_machine_in_a_platform(caller: Caller) -> None:
    config = on_platform({"kubeconfig": "/etc/nni/kubeconfig"})

    with serving(caller):
        assert FolderAdmission([Path("/data")]).check_storage(config) is None


def test_user_gives_a_password_and_leaves_out_files() -> None:
    config = on_platform({"password": "hush", "sshKeyFile": None})

    with serving(USER):
        assert FolderAdmission([Path("/data")]).check_storage(config) is None
