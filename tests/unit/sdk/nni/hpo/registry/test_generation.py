"""Text that is made from declarations."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nni.hpo.registry import built_in, generation
from nni.hpo.registry.arguments import Argument, DeclaredArguments
from nni.hpo.registry.entries import AlgorithmEntry
from nni.hpo.registry.generation import (
    EXPORTS,
    PRIORS,
    declared_entries,
    exported_names,
    exports_source,
    main,
    module_path,
    priors_source,
    source_of,
    table_source,
)
from nni.hpo.registry.rules import FloatRange, IntRange, OneOf
from nni.hpo.space.user_priors import TUNERS_WITH_PRIORS
from nni.spellings import SPELLINGS, module_source

ENTRY = AlgorithmEntry(
    "Demo",
    "tuner",
    "nni.hpo.tuners.random_search:DemoTuner",
    "demo.DemoTuner",
    DeclaredArguments("Demo", (Argument("size", IntRange(1, 9), 3),)),
)
PACKAGE = '''\
"""A package."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.hpo.base import Tuner, Assessor
    from nni.hpo.tuners.no_such_module import GoneTuner

_HOMES = {"Old": "old"}

__all__ = ["Old"]


def function() -> None: ...
'''


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (IntRange(1, 9), "IntRange(low=1, high=9)"),
        (FloatRange(), "FloatRange()"),
        (OneOf("a", "b"), "OneOf('a', 'b')"),
        (("a", 1), "('a',1,)"),
        (None, "None"),
    ],
)
def test_source_of_a_value_leaves_out_default_fields(value: object, text: str) -> None:
    assert source_of(value) == text


def test_source_of_a_declaration_builds_it() -> None:
    namespace: dict[str, object] = {}

    exec(table_source([ENTRY]), namespace)

    assert namespace["BUILT_IN"] == (ENTRY,)


def test_exports_are_the_imports_for_type_checkers_and_the_declared_classes() -> None:
    assert exported_names(PACKAGE, [ENTRY]) == {
        "Tuner": "nni.hpo.base",
        "Assessor": "nni.hpo.base",
        "DemoTuner": "nni.hpo.tuners.random_search",
    }


def test_written_package_says_each_export_three_times_and_keeps_the_rest() -> None:
    written = exports_source(PACKAGE, {"Tuner": "nni.hpo.base"})

    assert "    from nni.hpo.base import Tuner\n" in written
    assert "_HOMES = {\n    'Tuner': 'nni.hpo.base',\n}\n" in written
    assert "__all__ = [\n    'Tuner',\n]\n" in written
    assert written.startswith('"""A package."""\n')
    assert written.endswith("def function() -> None: ...\n")
    assert exported_names(written, []) == {"Tuner": "nni.hpo.base"}


@pytest.mark.parametrize("missing", ["if TYPE_CHECKING:", "_HOMES", "__all__"])
def test_package_of_another_shape_is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match=missing.strip(":")):
        exports_source(PACKAGE.replace(missing, "if False:" if ":" in missing else "other"), {})


def test_exports_of_the_package_are_what_its_declarations_say() -> None:
    import nni.hpo

    homes = exported_names(EXPORTS.read_text("utf-8"), declared_entries())

    assert homes == nni.hpo._HOMES, "run ./dev algorithms and commit what it writes"
    assert set(nni.hpo.__all__) == homes.keys()


def test_a_check_of_the_arguments_is_written_where_there_is_one() -> None:
    checked, free = (DeclaredArguments("Demo", (), check) for check in ("module:check", ""))

    assert source_of(checked) == "DeclaredArguments('Demo', (), 'module:check')"
    assert source_of(free) == "DeclaredArguments('Demo', ())"


def test_names_of_tuners_with_priors_replace_those_of_the_source() -> None:
    source = 'A: Final = 1\nTUNERS_WITH_PRIORS: Final = (\n    "old",\n)\n"""Meaning."""\n'
    entries = [replace(ENTRY, priors=True), replace(ENTRY, name="Other")]

    written = priors_source(source, entries)

    assert written == 'A: Final = 1\nTUNERS_WITH_PRIORS: Final = (\'Demo\',)\n"""Meaning."""\n'


def test_tuners_with_priors_are_what_the_declarations_say() -> None:
    declared = tuple(entry.name for entry in declared_entries() if entry.priors)

    assert declared == TUNERS_WITH_PRIORS, "run ./dev algorithms and commit what it writes"
    written = priors_source(PRIORS.read_text("utf-8"), [])
    assert "\nTUNERS_WITH_PRIORS: Final = ()\n" in written


def test_source_of_a_package_is_its_init() -> None:
    assert module_path("nni.hpo") == EXPORTS
    assert module_path("nni.hpo.base") == EXPORTS.with_name("base.py")


def test_old_files_are_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, exports, priors = (tmp_path / name for name in ("table.py", "exports.py", "priors.py"))
    exports.write_text(PACKAGE, "utf-8")
    priors.write_text("TUNERS_WITH_PRIORS: Final = ('old',)\n", "utf-8")
    for name, path in (("TABLE", table), ("EXPORTS", exports), ("PRIORS", priors)):
        monkeypatch.setattr(generation, name, path)
    monkeypatch.setattr(generation, "module_path", lambda module: tmp_path / module)
    entries = declared_entries()  # imports what reads the table, which `main` replaces
    monkeypatch.setitem(sys.modules, built_in.__name__, built_in)

    main()

    assert table.read_text("utf-8") == table_source(entries)
    homes = exported_names(PACKAGE, entries)
    assert homes.keys() > {"Tuner", "Assessor", "RandomTuner"}
    assert exports.read_text("utf-8") == exports_source(PACKAGE, homes)
    assert priors.read_text("utf-8") == f"TUNERS_WITH_PRIORS: Final = {TUNERS_WITH_PRIORS!r}\n"
    assert SPELLINGS
    for module in SPELLINGS:
        assert (tmp_path / module).read_text("utf-8") == module_source(module)
