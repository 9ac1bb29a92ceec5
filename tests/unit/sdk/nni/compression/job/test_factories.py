import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nni.compression.job.factories import load_factory
from nni.compression.job.field_checks import JobError

MODULE = "factories_of_a_test"


@pytest.fixture
def code(tmp_path: Path) -> Iterator[Path]:
    """Code directory with one module; the interpreter forgets it afterwards."""
    (tmp_path / f"{MODULE}.py").write_text("import os\n\ndef make(): return 7\n\nvalue = 3\n")
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in [one for one in sys.modules if one.partition(".")[0] == MODULE]:
        del sys.modules[name]


def test_a_function_of_the_code_directory_is_loaded_and_again(code: Path) -> None:
    for _ in range(2):
        assert load_factory(f"{MODULE}:make", "model.factory", code)() == 7


@pytest.mark.parametrize("reference", ["os:getcwd", "antigravity:fly", "no_such_module:make"])
def test_modules_elsewhere_are_refused_and_not_executed(code: Path, reference: str) -> None:
    with pytest.raises(JobError, match=r"model\.factory must name a module in the code directory"):
        load_factory(reference, "model.factory", code)

    assert "antigravity" not in sys.modules


def test_a_module_that_is_a_link_out_of_the_folder_is_refused(code: Path) -> None:
    outside = code.parent / "outside.py"
    outside.write_text("def make(): return 1")
    (code / "linked_module.py").symlink_to(outside)

    with pytest.raises(JobError, match="must name a module in the code directory"):
        load_factory("linked_module:make", "model.factory", code)


def test_a_module_of_the_same_name_from_elsewhere_is_not_used(code: Path, tmp_path: Path) -> None:
    load_factory(f"{MODULE}:make", "model.factory", code)
    (other := tmp_path / "other").mkdir()
    (other / f"{MODULE}.py").write_text("def make(): return 1")

    with pytest.raises(JobError, match="was imported from elsewhere"):
        load_factory(f"{MODULE}:make", "model.factory", other)


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        (f"{MODULE}:build", "has no function 'build'"),
        (f"{MODULE}:value", "has no function 'value'"),
        (f"{MODULE}.part:make", "is not a package"),
    ],
)
def test_what_a_module_lacks_is_named(code: Path, reference: str, problem: str) -> None:
    with pytest.raises(JobError, match=problem):
        load_factory(reference, "model.factory", code)
