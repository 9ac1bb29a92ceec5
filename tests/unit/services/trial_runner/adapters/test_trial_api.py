"""Path of interpreters that run with the hook: real ones, of another process."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from svc_common.errors import FailedPreconditionError
from svc_trial_runner.adapters.agent_folder import trial_sdk_folder
from svc_trial_runner.adapters.trial_api import warm_file, with_trial_api, write_trial_api

LIBRARY = """
import json, sys, nni
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("warm", sys.argv[1])
warm = module_from_spec(spec)
spec.loader.exec_module(warm)
warm._process.library_roots = warm.library_roots()
print(json.dumps([nni.__file__, warm.installed(nni)]))
"""
SHOWN = "import json, sys, nni; print(json.dumps([nni.WHERE, sys.path]))"


def library(folder: Path, where: str) -> Path:
    package = folder / "nni"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"WHERE = {where!r}\n")
    return package


def seen(variables: Mapping[str, str], *command: str) -> Any:
    """Return where `nni` is found, and the path, by an interpreter without packages of its own."""
    ran = subprocess.run(
        [sys.executable, "-B", *(command or ("-c", SHOWN))],
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


def test_library_of_the_user_comes_first(tmp_path: Path) -> None:
    hook = write_trial_api(tmp_path / "api", library(tmp_path / "bundle", "bundle"))
    library(tmp_path / "own", "own")

    where, path = seen(with_trial_api({"PYTHONPATH": str(tmp_path / "own")}, hook))

    assert where == "own"
    assert path[-1] == str(tmp_path / "api/packages")
    assert str(hook) not in path


def test_package_of_the_bundle_is_found_where_there_is_no_other(tmp_path: Path) -> None:
    api = library(tmp_path / "bundle", "bundle")
    (api.parent / "nni_wire").mkdir()
    hook = write_trial_api(tmp_path / "api", api)

    assert (tmp_path / "api/packages/nni").resolve() == api
    assert (tmp_path / "api/packages/nni_wire").is_dir()
    assert with_trial_api({"A": "b"}, hook) == {"A": "b", "PYTHONPATH": str(hook)}


def test_customisation_of_the_user_still_runs(tmp_path: Path) -> None:
    hook = write_trial_api(tmp_path / "api", library(tmp_path / "bundle", "bundle"))
    library(tmp_path / "own", "own")
    (tmp_path / "own/sitecustomize.py").write_text("import nni\nnni.WHERE = 'customised'\n")

    assert seen(with_trial_api({"PYTHONPATH": str(tmp_path / "own")}, hook))[0] == "customised"


def test_api_of_another_version_takes_the_place_of_the_last(tmp_path: Path) -> None:
    write_trial_api(tmp_path / "api", library(tmp_path / "old", "old"))

    write_trial_api(tmp_path / "api", new := library(tmp_path / "new", "new"))

    assert (tmp_path / "api/packages/nni").resolve() == new


def test_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(FailedPreconditionError, match="file/api cannot be used"):
        write_trial_api(tmp_path / "file/api", tmp_path / "nni")


def test_warm_interpreter_may_preload_the_library_of_the_bundle(tmp_path: Path) -> None:
    hook = write_trial_api(tmp_path / "api", trial_sdk_folder().parent)
    warm = warm_file(tmp_path / "api")

    # Without site-packages, where the library of this installation would be found first.
    run = ("-S", "-c", f"import sitecustomize\n{LIBRARY}", str(warm))
    file, installed = seen(with_trial_api({}, hook), *run)

    assert Path(file) == tmp_path / "api/packages/nni/__init__.py"
    assert installed


def test_draft_that_an_ended_agent_has_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "api/packages").mkdir(parents=True)
    (tmp_path / "api/packages/.nni").symlink_to("nowhere")

    write_trial_api(tmp_path / "api", api := library(tmp_path / "bundle", "bundle"))

    assert (tmp_path / "api/packages/nni").resolve() == api
    assert [path.name for path in (tmp_path / "api/packages").iterdir()] == ["nni"]
