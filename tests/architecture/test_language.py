"""The words of the repository: terms of the field, one name for one thing.

`FORBIDDEN` is a list of private or personifying words. They occur in no docstring, comment, string,
identifier (split at `_` and case), Markdown page, label of the web page or proto comment. The list
grows: a word that a reader stumbled over is added here with the term to use.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]

FORBIDDEN: Final = {
    "allotment": "allocation",
    "allotments": "allocations",
    "belief": "posterior",
    "beliefs": "posteriors",
    "everybody": "all callers, every user",
    "face": "API, endpoint",
    "faces": "APIs, endpoints",
    "hearsay": "unconfirmed report",
    "life": "generation, run, lifetime",
    "lives": "is, runs, generations",
    "nobody": "no caller, no user, none",
    "roster": "registry",
    "rouse": "wake",
    "rouses": "wakes",
    "saying": "report, message",
    "sayings": "reports, messages",
    "somebody": "a caller, a user",
    "surroundings": "dependencies",
    "told": "notified, sent; the past of ask and tell only",
    "vacancies": "free slots",
    "vacancy": "free slot",
    "whoever": "the caller, the reader",
    "witness": "telemetry, observer",
    "witnesses": "telemetry, observers",
    "workshop": "dependencies",
}
"""Word to what is written instead."""

PHRASES: Final = re.compile(
    r"\b(end|half)[ -]of[ -]life\b|\blife[ -]?cycles?\b|\bhalf-life\b", re.IGNORECASE
)
"""Terms of the field that hold a forbidden word."""

ASK_AND_TELL: Final = ("told",)
"""Words that modules about ask and tell may use."""
ASK_AND_TELL_PATHS: Final = (
    "proto/nni_proto/experiment/v1/study_service.proto",
    "sdk/nni/experiment/shared_study.py",
    "sdk/nni/experiment/study_",
    "services/manager/svc_manager/domain/decide_callers.py",
    "services/manager/svc_manager/usecases/shared_studies.py",
    "tests/e2e/test_shared_study.py",
    "tests/support/in_memory_studies.py",
    "tests/support/study_suite.py",
    "tests/unit/sdk/nni/experiment/test_shared_study.py",
    "tests/unit/sdk/nni/experiment/test_study_",
    "tests/unit/services/manager/domain/test_decide_callers.py",
    "tests/unit/services/manager/usecases/test_shared_studies.py",
    "sdk/nni/hpo/search/",
    "sdk/nni/hpo/tuners/",
    "sdk/nni/hpo/advisors/",
    "sdk-benchmark/",
    "tests/unit/sdk/nni/hpo/",
    "tests/unit/sdk-benchmark/",
    "tests/benchmarks/",
)

TWICE: Final = {
    "Cell": "a primitive of model spaces, and an operation of graphs; both are specified",
    "Constraint": "of search spaces of tuners, and of mutables; both are specified",
    "DARTS": "a space of the model hub, and a strategy; both are specified",
    "ENAS": "a space of the model hub, and a strategy; both are specified",
    "Evaluator": "of compression, and of architecture search; both are specified",
    "ExpressionConstraint": "of search spaces of tuners, and of mutables; both are specified",
    "Graph": "of a tuner's networks, and of a model space; both are specified",
    "Node": "of a traced model, and of a model space; both are specified",
    "Settings": "one of each service",
}
"""Classes whose name another one may have, and why."""

TEXT: Final = (".md", ".ts", ".tsx", ".proto", ".html", ".yaml", ".yml", ".toml")
GENERATED: Final = ("proto/gen/", "services/manager/svc_manager/web/webui/", "tests/assets/")
THIS: Final = "tests/architecture/test_language.py"

_CASE: Final = re.compile(r"([a-z0-9])([A-Z])")
_WORD: Final = re.compile(r"[a-z]+")


def tracked(*suffixes: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [
        name
        for name in listed
        if name.endswith(suffixes)
        and not name.startswith(GENERATED)
        and name != THIS
        and (ROOT / name).is_file()
    ]


def forbidden_in(text: str) -> set[str]:
    """Return the forbidden words of a text; identifiers count as their parts."""
    return _listed(PHRASES.sub("", text))


def _listed(text: str) -> set[str]:
    return set(_WORD.findall(_CASE.sub(r"\1_\2", text).lower())) & FORBIDDEN.keys()


def python_pieces(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of every identifier, comment and string."""
    kinds = {tokenize.NAME, tokenize.COMMENT, tokenize.STRING}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds:
            yield token.start[0], token.string


def pieces(name: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of the parts of a file; none if no word of the whole file is listed."""
    source = (ROOT / name).read_text("utf-8")
    if _listed(source):  # which is fast, and most have none; phrases are for the parts to judge
        lines = enumerate(source.split("\n"), 1)
        yield from python_pieces(source) if name.endswith(".py") else lines


def folder_of(name: str) -> str:
    """Return the first two folders of a path; the first one alone above them."""
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0] if len(parts) > 1 else "."


FILES: Final = tracked(".py", *TEXT)


@pytest.mark.parametrize("folder", sorted({folder_of(name) for name in FILES}))
def test_files_use_terms_of_the_field(folder: str) -> None:
    found = [
        f"{name}:{line}: {word!r}, write: {FORBIDDEN[word]}"
        for name in FILES
        if folder_of(name) == folder
        for line, text in pieces(name)
        for word in sorted(forbidden_in(text))
        if not (word in ASK_AND_TELL and name.startswith(ASK_AND_TELL_PATHS))
    ]

    assert found == []


def test_words_are_found_in_identifiers_and_text() -> None:
    assert forbidden_in("class TrialWitness: _is_told") == {"witness", "told"}
    assert forbidden_in("the life cycle of a surface, 12 workshops") == set()


def public_classes(distribution: str) -> dict[str, list[str]]:
    """Return the modules of a distribution that define each public class."""
    found = defaultdict(list)
    for name in tracked(".py"):
        if name.startswith(distribution):
            for node in ast.parse((ROOT / name).read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(name)
    return found


@pytest.mark.parametrize(
    "distribution",
    [
        *("sdk/", "sdk-benchmark/"),
        *(f"services/{name}/" for name in ("common", "dispatcher", "manager", "standalone")),
        "services/compressor/",
        "services/nas/",
        "services/trial-runner/",
    ],
)
def test_public_class_has_a_name_of_its_own(distribution: str) -> None:
    homes = public_classes(distribution)

    assert {name: at for name, at in homes.items() if len(at) > 1 and name not in TWICE} == {}
