from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nni.annotation import AnnotationError, convert, derive_search_space
from tests.support.converted_code import run_converted

X = "'''@nni.variable(nni.uniform(0, 1), name=x)'''\nx = 0.5\n"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """An annotated code directory."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(X)
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Where the copy goes."""
    return tmp_path / "copy"


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_copy_is_converted_and_original_stays(code: Path, copy: Path) -> None:
    (code / "data").mkdir()
    (code / "data" / "table.csv").write_bytes(b"a,b\r\n")
    (code / "plain.py").write_text("print('no annotation: @nni is only mentioned')\n")
    before = snapshot(code)

    done = convert(code, copy)

    assert snapshot(code) == before
    assert done.converted == (Path("train.py"),)
    assert done.search_space == {"x": {"_type": "uniform", "_value": [0, 1]}}
    assert run_converted((copy / "train.py").read_bytes(), {"x": 0.25})["x"] == 0.25
    assert (copy / "data" / "table.csv").read_bytes() == b"a,b\r\n"
    assert (copy / "plain.py").read_bytes() == (code / "plain.py").read_bytes()


def test_space_can_be_had_without_a_copy(code: Path) -> None:
    before = snapshot(code)

    assert derive_search_space(code) == {"x": {"_type": "uniform", "_value": [0, 1]}}
    assert snapshot(code) == before


def test_name_used_twice_is_distinguished_by_module_and_number(code: Path, copy: Path) -> None:
    (code / "models").mkdir()
    (code / "models" / "net.py").write_text(X.replace("1)", "2)") + X.replace("1)", "3)"))
    (code / "models" / "other.py").write_text(X.replace("x", "y"))

    done = convert(code, copy)

    assert {key: entry["_value"][1] for key, entry in done.search_space.items()} == {
        "models.net/x/0": 2,
        "models.net/x/1": 3,
        "y": 1,
        "train/x/0": 1,
    }
    values = {"models.net/x/0": 0.1, "models.net/x/1": 0.2}
    assert run_converted((copy / "models" / "net.py").read_bytes(), values)["x"] == 0.2


def test_types_and_options_stand_in_the_space_as_written(code: Path) -> None:
    (code / "train.py").write_text(
        "'''@nni.variable(nni.choice(1, 'a', base * 2), name=x)'''\nx = 1\n"
        "'''@nni.variable(nni.qloguniform(1, 100, 1), name=y)'''\ny = 1\n"
        "'''@nni.function_choice(f(1), g(x=2), name=f)'''\nf(1)\n"
    )

    assert derive_search_space(code) == {
        "x": {"_type": "choice", "_value": [1, "a", "base * 2"]},
        "y": {"_type": "qloguniform", "_value": [1, 100, 1]},
        "f": {"_type": "choice", "_value": ["f(1)", "g(x=2)"]},
    }


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("nni.uniform(1, 0)", "low must be <= high"),
        ("nni.uniform(1)", r"must be \[low, high\]"),
        ("nni.loguniform(0, 1)", "low of loguniform must be > 0"),
        ("nni.randint(1.5, 3)", "must be integers"),
        ("nni.normal(0, 0)", "sigma must be > 0"),
    ],
)
def test_range_that_no_tuner_takes_names_file_and_line(
    code: Path, copy: Path, annotation: str, message: str
) -> None:
    (code / "train.py").write_text(f"\n'''@nni.variable({annotation}, name=x)'''\nx = 1\n")

    with pytest.raises(AnnotationError, match=rf"train\.py:2: .*'x'.*{message}"):
        convert(code, copy)

    assert not copy.exists()


def test_code_without_annotation_is_refused(code: Path, copy: Path) -> None:
    (code / "train.py").write_text("x = 1  # @nni.variable(nni.uniform(0, 1), name=x)\n")

    with pytest.raises(AnnotationError, match=r"code: must have an annotation"):
        convert(code, copy)

    assert not copy.exists()


def test_reports_alone_give_an_empty_space(code: Path, copy: Path) -> None:
    (code / "train.py").write_text("'''@nni.report_final_result(1)'''\n")

    assert convert(code, copy).search_space == {}


def test_files_that_are_no_python_stay_what_they_are(code: Path, copy: Path) -> None:
    (code / "old.py").write_text("print 'Python 2'\n")
    (code / "run.sh").write_text("#!/bin/sh\n# '@nni.'\n")
    (code / "run.sh").chmod(0o755)
    (code / "__pycache__").mkdir()
    (code / "__pycache__" / "train.pyc").write_bytes(b"")
    os.mkfifo(code / "pipe")

    convert(code, copy)

    assert (copy / "old.py").read_text() == "print 'Python 2'\n"
    assert os.access(copy / "run.sh", os.X_OK)
    assert sorted(path.name for path in copy.iterdir()) == ["old.py", "run.sh", "train.py"]


def test_links_lead_where_they_led_but_python_behind_them_is_converted(
    code: Path, copy: Path, tmp_path: Path
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "big.bin").write_bytes(b"big")
    (tmp_path / "model.py").write_text(X.replace("x", "y"))
    (code / "data").symlink_to("../shared")
    (code / "model.py").symlink_to("../model.py")
    (code / "gone.py").symlink_to("nowhere.py")

    done = convert(code, copy)

    assert set(done.search_space) == {"x", "y"}
    assert (copy / "data").is_symlink()
    assert (copy / "data" / "big.bin").read_bytes() == b"big"
    assert not (copy / "model.py").is_symlink()
    assert (copy / "gone.py").is_symlink()
    assert (tmp_path / "model.py").read_text() == X.replace("x", "y")


@pytest.mark.parametrize(
    ("marker", "leave"),
    [("pyvenv.cfg", lambda _: False), ("README", lambda path: path == "other/")],
)
def test_what_is_no_code_of_the_user_is_linked_to(
    code: Path, copy: Path, marker: str, leave: Callable[[str], bool]
) -> None:
    (code / "other").mkdir()
    (code / "other" / marker).write_text("")
    (code / "other" / "lib.py").write_text("'''@nni.wrong'''\n")

    done = convert(code, copy, leave=leave)

    assert done.converted == (Path("train.py"),)
    assert (copy / "other").is_symlink()
    assert (copy / "other" / "lib.py").is_file()


def test_conversion_of_equal_folders_is_equal(code: Path, tmp_path: Path) -> None:
    first: Any = convert(code, tmp_path / "one")
    second: Any = convert(code, tmp_path / "two")

    assert first == second
    assert (tmp_path / "one" / "train.py").read_bytes() == (
        tmp_path / "two" / "train.py"
    ).read_bytes()
