"""Execution of the Python blocks of the documentation, and checks of the others.

Pages of `docs/tutorials`, and blocks that need the services, run in `tests/e2e/test_tutorials.py`.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest
import typer.main
import yaml
from typer.core import TyperGroup

from nni.cli.app import app
from nni.experiment.config import ExperimentConfig
from tests.support.markdown import ROOT, CodeBlock, code_blocks, documentation_pages, words_of

PAGES = [page for page in documentation_pages() if page.parent.name != "tutorials"]
NEEDS_SERVICES = (
    "nni.experiment import Experiment",
    "nni.experiment import SharedStudy",
    "nni.compression.remote",
    "nni.get_next_parameter",
    "nni.report_",
)


def ids(pages: list[Path]) -> list[str]:
    return [page.relative_to(ROOT).as_posix() for page in pages]


def blocks_of(page: Path, *languages: str) -> list[CodeBlock]:
    return [block for block in code_blocks(page) if block.language in languages]


def runs_alone(block: CodeBlock) -> bool:
    return not any(text in block.text for text in NEEDS_SERVICES)


WITH_PYTHON = [page for page in PAGES if any(map(runs_alone, blocks_of(page, "python")))]
WITH_DATA = [page for page in documentation_pages() if blocks_of(page, "yaml", "json")]
WITH_COMMANDS = [
    (page, command)
    for page in documentation_pages()
    for block in blocks_of(page, "console", "bash", "sh")
    for command in block.commands()
    if command.startswith("nnictl ")
]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=ids(WITH_PYTHON))
@pytest.mark.timeout(120)
# Lightning 2.6 calls functions of torch 2.13 that are deprecated, and advises more processes.
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning")
def test_python_blocks_of_a_page_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    module = types.ModuleType("page")  # dataclasses look for the module of their class
    monkeypatch.setitem(sys.modules, "page", module)
    empty = len(vars(module))

    for block in filter(runs_alone, blocks_of(page, "python")):
        source = "\n" * block.line + block.text
        exec(compile(source, str(page), "exec", dont_inherit=True), vars(module))

    assert len(vars(module)) > empty


@pytest.mark.parametrize("page", WITH_DATA, ids=ids(WITH_DATA))
def test_data_blocks_of_a_page_are_valid(page: Path) -> None:
    documents = [json.loads(block.text) for block in blocks_of(page, "json")]
    for block in blocks_of(page, "yaml"):
        document = yaml.safe_load(block.text)
        complete = isinstance(document, dict) and "trialCommand" in document
        documents.append(ExperimentConfig(**document).to_dict() if complete else document)

    assert None not in documents


@pytest.mark.parametrize(
    ("page", "command"), WITH_COMMANDS, ids=[command for _, command in WITH_COMMANDS]
)
def test_command_line_has_known_commands_and_options(page: Path, command: str) -> None:
    words = words_of(command)[1:]
    context = typer.main.get_command(app).make_context("nnictl", [], resilient_parsing=True)
    here = context.command

    while words and isinstance(here, TyperGroup) and words[0] in here.commands:
        here = here.commands[words.pop(0)]
    options = {name for one in here.params for name in [*one.opts, *one.secondary_opts]}
    given = {word.partition("=")[0] for word in words if word.startswith("-")}

    assert here is not context.command or given, f"{page}: no such command: {command}"
    assert given <= options | {"--help", "-h", "--version"}, f"{page}: {command}"
