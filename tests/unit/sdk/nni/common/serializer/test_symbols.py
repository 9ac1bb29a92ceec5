import collections.abc
import sys
from pathlib import Path

import pytest
import torch

import nni
from nni.common.serializer.symbols import importable_symbol, symbol_at, symbol_path


class Outer:
    class Inner:
        pass


@nni.trace
class Decorated:
    pass


def test_a_class_has_the_path_of_its_module_and_name() -> None:
    assert symbol_path(torch.optim.Adam) == "torch.optim.adam.Adam"
    assert symbol_path(nni.trace(torch.optim.Adam)) == "torch.optim.adam.Adam"


def test_a_name_inside_a_class_is_found() -> None:
    path = symbol_path(Outer.Inner)

    assert path is not None
    assert symbol_at(path) is Outer.Inner


def test_a_decorated_class_is_found_as_its_wrapper() -> None:
    path = symbol_path(Decorated)

    assert path is not None
    assert symbol_at(path) is Decorated


def test_local_names_have_no_path() -> None:
    class Local:
        pass

    assert symbol_path(Local) is None
    assert symbol_path(lambda: 1) is None
    assert importable_symbol(3) is None


def test_another_object_under_the_name_is_no_path() -> None:
    impostor = type("Adam", (), {"__module__": "torch.optim.adam", "__qualname__": "Adam"})

    assert symbol_path(impostor) is None


def test_the_main_module_has_no_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outer, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Outer", Outer, raising=False)

    assert symbol_path(Outer) is None


def test_a_path_that_does_not_exist_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="no module 'no_such_module' here"):
        symbol_at("no_such_module.Name")
    with pytest.raises(ImportError, match=r"cannot load 'collections\.abc\.Nothing'"):
        symbol_at(f"{collections.abc.__name__}.Nothing")


def test_a_module_that_lacks_another_one_reports_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needs_more.py").write_text("import not_there_at_all")
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        symbol_at("needs_more.Name")
