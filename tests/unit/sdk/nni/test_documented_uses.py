"""Which documented uses of NNI 2.5 and 3.0 are refused, and that the documentation lists them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nni.cli.main import _ALGO_OF_NNI_1, _REMOVED
from nni.experiment.config import ExperimentConfig
from nni.experiment.errors import ConfigError
from nni.hpo.registry.factory import find, is_advisor
from tests.support.documented_uses import (
    ADVISORS,
    ASSESSORS,
    COMMAND_LINES,
    PLATFORMS,
    TUNERS,
)

PAGE = Path(__file__).parents[4] / "docs" / "coming-from-nni.md"
HEADING = "## Documented uses that are refused"


def refusal_of_line(line: str) -> str:
    """Return why the words of a command line are not accepted; empty if they are."""
    words = line.split()
    for removed, remedy in _REMOVED.items():
        if tuple(words[: len(removed)]) == removed:
            return remedy
    if words[0] == _ALGO_OF_NNI_1:
        words[0] = "algo"
    return _usage_error(words)


def _usage_error(words: list[str]) -> str:
    """Parse the words by the tree of commands, and run nothing."""
    import typer.main

    from nni.cli.app import app

    command: Any = typer.main.get_command(app)
    usage_error: Any = typer.BadParameter.__mro__[1]  # its public name is the subclass's alone
    context = None
    try:
        while True:
            context = command.make_context(
                words[0] if context is not None else "nnictl",
                words[1:] if context is not None else words,
                parent=context,
            )
            rest = [*getattr(context, "_protected_args", ()), *context.args]
            if not rest or not hasattr(command, "get_command"):
                return ""
            words = rest
            _, command, _ = command.resolve_command(context, list(rest))
    except usage_error as error:
        return str(error.format_message())


def refusal_of_platform(section: Any) -> str:  # whether one can run on it is said elsewhere
    try:
        config = ExperimentConfig(
            search_space={"x": {"_type": "uniform", "_value": [0, 1]}},
            trial_command="python3 trial.py",
            trial_concurrency=1,
            tuner={"name": "TPE"},
            training_service=section,
        )
        config.validate()
    except ConfigError as error:
        return error.problems[0].remedy or error.problems[0].rule
    return ""


def refusal_of_algorithm(kind: str, name: str) -> str:
    if kind == "tuner" and is_advisor(name):
        return ""
    try:
        find("tuner" if kind == "tuner" else "assessor" if kind == "assessor" else "advisor", name)
    except ValueError:
        return f"there is no such {kind}; see: nnictl algo list"
    return ""


def refused() -> Iterator[tuple[str, str]]:
    """Yield each documented use that is refused, with the reason or what to do instead."""
    for line in COMMAND_LINES:
        if reason := refusal_of_line(line):
            yield f"`nnictl {line}`", reason
    for kind, names in (("tuner", TUNERS), ("assessor", ASSESSORS), ("advisor", ADVISORS)):
        for name in names:
            if reason := refusal_of_algorithm(kind, name):
                yield f"`{kind}: {{name: {name}}}`", reason
    for name, section in PLATFORMS.items():
        if reason := refusal_of_platform(section):
            yield f"`trainingService: {{platform: {name}}}`", reason


def test_page_lists_every_documented_use_that_is_refused() -> None:
    uses = list(refused())
    table = "\n".join(["| use | what to do |", "|---|---|", *(f"| {a} | {b} |" for a, b in uses)])
    counts = len(COMMAND_LINES), len(TUNERS) + len(ASSESSORS) + len(ADVISORS), len(PLATFORMS)
    text = (
        f"Of {counts[0]} documented lines of `nnictl`, {counts[1]} names of algorithms and "
        f"{counts[2]} platforms these are refused:\n\n{table}\n"
    )

    _, found, after = PAGE.read_text("utf-8").partition(f"{HEADING}\n\n")
    assert found
    assert after.startswith(text), text


@pytest.mark.parametrize("line", ["crate", "stop --every", "trial ls --first 3"])
def test_line_that_is_no_use_is_found(line: str) -> None:
    assert refusal_of_line(line)
