"""`nnictl experiment replay`: draw every suggestion again and print whether all are equal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import typer

from nni.cli.options import Json, OptionalId
from nni.cli.output import Messages, json_text, table, write_json

if TYPE_CHECKING:
    from nni.experiment.replay import ReplayDifference, ReplayResult

_HEADERS: Final = ("Trial", "Parameters", "First difference", "In the log", "Drawn")
_SHOWN: Final = 20
"""Differing suggestions in the table; `--json` has more."""
_CELL_CHARACTERS: Final = 60
_EXIT_DIFFERENT: Final = 1


def register(app: typer.Typer) -> None:
    """Add the command `replay` to `nnictl experiment`."""
    app.command("replay")(replay)


def replay(*, id: OptionalId = None, as_json: Json = False) -> None:  # noqa: A002 - documented
    """Draw every suggestion of an experiment again from its log; exit code 1 if one differs."""
    from nni.cli.session import experiment
    from nni.experiment.replay import replay as run

    with experiment(id) as (client, experiment_id), _progress() as show:
        result = run(client, experiment_id, show)
    if as_json:
        write_json({"experimentId": experiment_id, **_record(result)})
    else:
        _say(experiment_id, result)
    if not result.repeatable:
        raise typer.Exit(_EXIT_DIFFERENT)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Yield a callback that shows the replay's progress, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _handled, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("Replaying"), BarColumn(bar_width=24), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(handled: int, total: int) -> None:
            bar.update(task, completed=handled, total=total or None)

        yield show


def _record(result: ReplayResult) -> dict[str, Any]:
    return {
        "repeatable": result.repeatable,
        "suggestions": result.suggestions,
        "equal": result.equal,
        "generations": result.generations,
        "stops": result.stops,
        "equalStops": result.equal_stops,
        "missingStops": list(result.missing_stops),
        "reason": result.reason,
        "changedVersions": [
            {"name": name, "recorded": recorded, "present": present}
            for name, recorded, present in result.changed_versions
        ],
        "differences": [_difference_record(item) for item in result.differences],
        "durationSeconds": result.duration_s,
    }


def _difference_record(item: ReplayDifference) -> dict[str, Any]:
    renamed = {"parameter_id": "parameterId", "trial_id": "trialId"}
    return {renamed.get(name, name): value for name, value in asdict(item).items()}


def _say(experiment_id: str, result: ReplayResult) -> None:
    messages = Messages()
    if result.repeatable:
        messages.info(_success(experiment_id, result))
        return
    if result.differences:
        shown = result.differences[:_SHOWN]
        messages.line(table(_HEADERS, [_row(item) for item in shown]))
        if len(result.differences) > len(shown):
            messages.line(f"... and {len(result.differences) - len(shown)} more; see --json")
    if result.missing_stops:
        messages.line("Not stopped again: " + " ".join(result.missing_stops))
    for name, recorded, present in result.changed_versions:
        messages.warning(f"{name} was {recorded} and is {present}")
    messages.error(f"Experiment {experiment_id} is not repeatable: {result.reason}.")


def _success(experiment_id: str, result: ReplayResult) -> str:
    spans = f" in {result.generations} generations" if result.generations > 1 else ""
    stops = f" and all {result.stops} early stops" if result.stops else ""
    return (
        f"All {result.suggestions} suggestions{stops} of experiment {experiment_id} were drawn "
        f"again{spans} and are equal ({result.duration_s:.1f} s)."
    )


def _row(item: ReplayDifference) -> list[object]:
    return [
        item.trial_id or None,
        item.parameter_id,
        item.parameter or "all",
        _cell(value_at(item.recorded, item.parameter)),
        _cell(value_at(item.drawn, item.parameter)),
    ]


def _cell(value: object) -> str:
    text = "nothing" if value is None else json_text(value, indent=None)
    return text if len(text) <= _CELL_CHARACTERS else text[: _CELL_CHARACTERS - 3] + "..."


def value_at(value: Any, path: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the part of a value at a path (`model.C`, `layers[2]`); None if it is missing."""
    for part in filter(None, path.replace("[", ".[").split(".")):
        if part.startswith("[") and isinstance(value, list):
            place = int(part[1:-1])
            value = value[place] if place < len(value) else None
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value
