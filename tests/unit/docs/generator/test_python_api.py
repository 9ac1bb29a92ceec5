"""Every public name exists, is listed once, and is documented."""

import inspect
from importlib import import_module

import pytest

from docs.generator.python_api import PUBLIC_MODULES, home_of, public_names, python_pages


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_all_of_a_public_module_exists(module: str) -> None:
    found = import_module(module)

    assert len(set(found.__all__)) == len(found.__all__)
    assert [name for name in found.__all__ if not hasattr(found, name)] == []


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_public_classes_and_functions_have_a_docstring(module: str) -> None:
    values = {name: getattr(import_module(module), name) for name in public_names(module)}

    assert values
    for name, value in values.items():
        is_documented = inspect.isclass(value) or inspect.isroutine(value)
        assert value.__doc__ if is_documented else home_of(module, name), name


def test_pages_name_every_public_name() -> None:
    pages = python_pages()

    for module in PUBLIC_MODULES:
        for name in public_names(module):
            assert f"\n## {name}\n" in pages[f"reference/python/{module}.md"]
            assert f"::: {home_of(module, name)}\n" in pages[f"reference/python/{module}.md"]
