"""Saving and loading as the client does it, with a manager that is a few lines long."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from nni.experiment.archive import Archive
from nni.experiment.client import ManagerClient
from nni.experiment.errors import ConfigError, RefusedError, ServiceFailedError, WrongStateError
from nni.experiment.transfer import load, save
from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.experiment.v1 import history_service_pb2 as pb
from nni_wire.values import to_value

ID = "abcd1234"
SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


class Store:
    """The two calls of a manager that are used here."""

    def __init__(self, code: Path) -> None:
        self.code = code
        self.pieces = [
            pb.FilePiece(name="events.log", data=b"one"),
            pb.FilePiece(name="events.log", data=b"two", last=True),
            pb.FilePiece(name="folder/log/nnimanager.log", data=b"said", last=True),
        ]
        self.header: pb.LoadHeader | None = None
        self.files: dict[str, bytes] = {}
        self.taken = False

    @property
    def client(self) -> ManagerClient:
        return cast("ManagerClient", self)

    def save(self, experiment_id: str, *, with_files: bool) -> Iterator[pb.SaveExperimentResponse]:
        about = pb.SavedExperiment(nni_version="1.0")
        about.experiment.id = experiment_id
        about.experiment.config.trial_code_directory = str(self.code)
        about.experiment.config.search_space.CopyFrom(to_value(SPACE))
        yield pb.SaveExperimentResponse(about=about)
        for piece in self.pieces if with_files else self.pieces[:2]:
            yield pb.SaveExperimentResponse(piece=piece)

    def load(
        self, header: pb.LoadHeader, pieces: Callable[[], Iterator[pb.FilePiece]]
    ) -> experiment_pb2.Experiment:
        if self.taken:
            raise WrongStateError("it is here already")
        self.header = header
        for piece in pieces():
            self.files[piece.name] = self.files.get(piece.name, b"") + piece.data
        return experiment_pb2.Experiment(id=header.experiment_id)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    code = tmp_path / "code"
    (code / "lib").mkdir(parents=True)
    (code / "trial.py").write_text("print(1)\n")
    (code / "lib" / "run.sh").write_text("true\n")
    (code / "lib" / "run.sh").chmod(0o755)
    (code / "secret.key").write_text("k")
    (code / ".nniignore").write_text("*.key\n")
    return Store(code)


def saved(store: Store, tmp_path: Path, **options: Any) -> Path:
    return save(store.client, ID, tmp_path / "out", **options).path


def test_archive_is_for_its_owner_alone_and_nothing_else_is_left(
    store: Store, tmp_path: Path
) -> None:
    path = saved(store, tmp_path)

    assert path.name == f"nni_experiment_{ID}.zip"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_archive_has_what_the_manager_gave(store: Store, tmp_path: Path) -> None:
    with Archive(saved(store, tmp_path)) as archive:
        archive.verify()
        assert list(archive.manifest.files) == ["events.log", "folder/log/nnimanager.log"]
        assert archive.manifest.search_space == SPACE


def test_code_travels_if_asked_for_without_what_is_ignored(store: Store, tmp_path: Path) -> None:
    with Archive(saved(store, tmp_path, with_code=True)) as archive:
        assert sorted(archive.manifest.code) == [".nniignore", "lib/run.sh", "trial.py"]
        assert archive.manifest.code["lib/run.sh"].executable


def test_archives_beside_the_code_are_no_code(store: Store, tmp_path: Path) -> None:
    for _ in range(2):
        path = save(store.client, ID, store.code, with_code=True).path

    with Archive(path) as archive:
        assert sorted(archive.manifest.code) == [".nniignore", "lib/run.sh", "trial.py"]


def test_code_that_is_not_here_is_refused(store: Store, tmp_path: Path) -> None:
    store.code = tmp_path / "gone"

    with pytest.raises(ConfigError, match="not on this machine"):
        saved(store, tmp_path, with_code=True)

    assert list((tmp_path / "out").iterdir()) == []


def test_files_may_stay_behind(store: Store, tmp_path: Path) -> None:
    with Archive(saved(store, tmp_path, with_files=False)) as archive:
        assert list(archive.manifest.files) == ["events.log"]


def test_a_file_that_breaks_off_is_an_error(store: Store, tmp_path: Path) -> None:
    del store.pieces[1:]

    with pytest.raises(ServiceFailedError, match=r"broke off in events\.log"):
        saved(store, tmp_path)

    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match="--path"):
        save(store.client, ID, tmp_path / "file")


def test_load_gives_the_manager_its_files_and_places_the_code(store: Store, tmp_path: Path) -> None:
    path, new = saved(store, tmp_path, with_code=True), tmp_path / "new"

    loaded = load(store.client, path, new, root=tmp_path / "root")

    assert loaded.id == ID
    assert store.files == {"events.log": b"onetwo", "folder/log/nnimanager.log": b"said"}
    assert store.header is not None
    assert store.header.trial_code_directory == str(new)
    assert store.header.experiment_working_directory == str(tmp_path / "root")
    assert (new / "trial.py").read_text() == "print(1)\n"
    assert stat.S_IMODE((new / "lib" / "run.sh").stat().st_mode) == 0o755
    assert json.loads((new / "search_space.json").read_text()) == SPACE


def test_load_into_a_folder_that_has_the_code_changes_nothing_there(
    store: Store, tmp_path: Path
) -> None:
    path = saved(store, tmp_path, with_code=True)
    before = (store.code / "trial.py").stat().st_mtime_ns

    load(store.client, path, store.code, search_space_path=tmp_path / "space.json")

    assert (store.code / "trial.py").stat().st_mtime_ns == before
    assert (tmp_path / "space.json").exists()
    assert not (store.code / "search_space.json").exists()


def test_other_code_in_the_way_is_refused_before_anything_is_loaded(
    store: Store, tmp_path: Path
) -> None:
    path, new = saved(store, tmp_path, with_code=True), tmp_path / "new"
    new.mkdir()
    (new / "trial.py").write_text("print(2)\n")

    with pytest.raises(RefusedError, match="another --codeDir"):
        load(store.client, path, new)

    assert store.header is None
    assert [item.name for item in new.iterdir()] == ["trial.py"]


def test_a_link_that_leads_out_of_the_code_folder_is_not_followed(
    store: Store, tmp_path: Path
) -> None:
    path, new, outside = saved(store, tmp_path, with_code=True), tmp_path / "new", tmp_path / "o"
    new.mkdir()
    outside.mkdir()
    (new / "lib").symlink_to(outside)

    with pytest.raises(RefusedError):
        load(store.client, path, new)

    assert list(outside.iterdir()) == []


def test_another_search_space_in_the_way_is_refused(store: Store, tmp_path: Path) -> None:
    path, space = saved(store, tmp_path), tmp_path / "space.json"
    space.write_text('{"other": 1}')

    with pytest.raises(RefusedError, match="--searchSpacePath"):
        load(store.client, path, tmp_path / "new", search_space_path=space)

    assert space.read_text() == '{"other": 1}'


def test_a_refusal_of_the_manager_places_nothing(store: Store, tmp_path: Path) -> None:
    path = saved(store, tmp_path, with_code=True)
    store.taken = True

    with pytest.raises(WrongStateError):
        load(store.client, path, tmp_path / "new")

    assert not (tmp_path / "new").exists()


def test_a_damaged_archive_is_refused_before_the_manager_hears_of_it(
    store: Store, tmp_path: Path
) -> None:
    path = saved(store, tmp_path)
    path.write_bytes(path.read_bytes()[:-40])

    with pytest.raises(ConfigError):
        load(store.client, path, tmp_path / "new")

    assert store.header is None
