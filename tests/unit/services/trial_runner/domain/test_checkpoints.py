from __future__ import annotations

import pytest

from svc_trial_runner.domain.checkpoints import checkpoint_folders

PBT = {"x": 1, "load_checkpoint_dir": "/c/0/0", "save_checkpoint_dir": "/c/0/1"}


def test_folders_of_the_algorithm_become_folders_of_the_trial() -> None:
    folders = checkpoint_folders(PBT, "/trials/t1")

    assert folders is not None
    assert folders.load.startswith("/trials/t1/checkpoints/")
    assert folders.save.startswith("/trials/t1/checkpoints/")
    assert folders.load != folders.save
    assert folders.parameters == {
        "x": 1,
        "load_checkpoint_dir": folders.load,
        "save_checkpoint_dir": folders.save,
    }
    assert folders.save_name == "/c/0/1"
    assert PBT["save_checkpoint_dir"] == "/c/0/1"


def test_folder_of_a_name_is_the_same_in_every_version_of_the_agent() -> None:
    folders = checkpoint_folders({"save_checkpoint_dir": "/c/0/1"}, "/t")

    assert folders is not None
    assert folders.save == "/t/checkpoints/bf6423ebfee1"


def test_trial_that_loads_from_where_it_saves_has_one_folder() -> None:
    folders = checkpoint_folders(PBT | {"load_checkpoint_dir": "/c/0/1"}, "/t")

    assert folders is not None
    assert folders.load == folders.save


def test_trial_may_only_save_or_only_load() -> None:
    saving = checkpoint_folders({"save_checkpoint_dir": "/c"}, "/t")
    loading = checkpoint_folders({"load_checkpoint_dir": "/c"}, "/t")

    assert saving is not None
    assert (saving.load, bool(saving.save)) == ("", True)
    assert loading is not None
    assert (bool(loading.load), loading.save) == (True, "")


@pytest.mark.parametrize("parameters", [{}, {"x": 1}, [1], None, {"save_checkpoint_dir": 7}])
def test_other_parameters_name_no_folder(parameters: object) -> None:
    assert checkpoint_folders(parameters, "/t") is None


def test_name_cannot_leave_the_folder_of_the_trial() -> None:
    folders = checkpoint_folders({"save_checkpoint_dir": "../../../etc"}, "/t")

    assert folders is not None
    assert folders.save.startswith("/t/checkpoints/")
    assert ".." not in folders.save
