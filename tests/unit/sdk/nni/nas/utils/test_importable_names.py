"""Names by which another process imports classes."""

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import pytest

import nni
from nni.nas.utils import get_importable_name, import_


def test_name_and_import_are_inverse() -> None:
    assert import_(get_importable_name(OrderedDict)) is OrderedDict


def test_attribute_of_a_class_is_found() -> None:
    assert import_("collections.OrderedDict.fromkeys") == OrderedDict.fromkeys


@pytest.mark.parametrize("name", ["collections.Absent", "absent_module.Thing", "plain"])
def test_name_of_nothing_is_an_import_error(name: str) -> None:
    with pytest.raises(ImportError, match="cannot be imported"):
        import_(name)


def test_error_inside_an_imported_module_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_module.py").write_text("import absent_dependency\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(ModuleNotFoundError, match="absent_dependency"):
        import_("half_module.Thing")


def test_traced_object_is_named_by_its_class() -> None:
    traced: object = nni.trace(OrderedDict)()

    assert get_importable_name(traced) == "collections.OrderedDict"


SCRIPT = """
from nni.nas.utils import get_importable_name

class Net:
    pass

print(get_importable_name(Net), get_importable_name(Net, relocate_module=True))
"""


def test_class_of_the_script_is_named_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "search.py").write_text(SCRIPT)

    done = subprocess.run(
        [sys.executable, "search.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["__main__.Net", "search.Net"]


def test_script_of_another_folder_cannot_be_imported_by_workers(tmp_path: Path) -> None:
    (tmp_path / "search.py").write_text(SCRIPT)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    done = subprocess.run(
        [sys.executable, "../search.py"],
        cwd=elsewhere,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "RuntimeError: Net is defined in the launched script" in done.stderr
