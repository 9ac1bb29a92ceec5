"""`nnictl nas`: architecture searches whose strategy runs in the NAS service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nni.cli.listing import Output, write_listing
from nni.cli.options import Json, OptionalId
from nni.cli.output import Messages, table, write_json

if TYPE_CHECKING:
    from nni.nas.experiment.remote_exploration import (
        ExplorationStatus,
        ExploredModel,
        RemoteExploration,
    )

app = typer.Typer(
    help="Create and follow architecture searches that the services host.", no_args_is_help=True
)

_LIST_HEADERS: Final = ("Id", "Name", "State", "Strategy", "Models", "Best")
_TOP_HEADERS: Final = ("Metric", "Sample", "Trial")


@app.command("create")
def create(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:NAME",
            show_default=False,
            help="A NasExperiment, or a function that returns one; MODULE is found from here.",
        ),
    ],
    *,
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="Port of its page; 0: none.")
    ] = 0,
) -> None:
    """Check a search and start it; it continues without this process."""
    from nni.experiment.errors import ConfigError, Problem
    from nni.nas.experiment.submission import load_search, submit_search

    search = load_search(target)
    try:
        exploration_id = submit_search(search, port=port)
    except (TypeError, ValueError) as error:
        raise ConfigError([Problem(f"{target}:", str(error))]) from error
    messages = Messages()
    messages.info(f"Created exploration {exploration_id}")
    messages.info(f"Its best models: nnictl nas top {exploration_id}")


@app.command("list")
def list_all(*, output: Output = "table", as_json: Json = False) -> None:
    """Print all searches of the NAS service, newest first."""
    from nni.cli.session import manager
    from nni.nas.experiment.remote_exploration import list_explorations

    with manager(start=True) as client:
        found = list_explorations(client)
    records = [asdict(one) for one in found]
    rows = [
        (one.id, one.name, one.state, one.strategy, sum(one.trials.values()), one.best)
        for one in found
    ]
    write_listing(records, _LIST_HEADERS, lambda: rows, output=output, as_json=as_json)


@app.command("show")
def show(exploration_id: OptionalId = None, *, as_json: Json = False) -> None:
    """Print state, settings, number of models and best result of a search."""
    with _exploration(exploration_id) as exploration:
        found = exploration.status()
    if as_json:
        write_json(asdict(found))
    else:
        _show(found)


@app.command("top")
def top(
    exploration_id: OptionalId = None,
    *,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=1_000, help="Number of models at most.")
    ] = 5,
    output: Output = "table",
    as_json: Json = False,
) -> None:
    """Print the best models as samples, the largest metric first."""
    with _exploration(exploration_id) as exploration:
        models = exploration.top(count)
    records = [_record(one) for one in models]
    rows = [(one.value, json.dumps(dict(one.sample)), one.trial_id) for one in models]
    write_listing(records, _TOP_HEADERS, lambda: rows, output=output, as_json=as_json)


@app.command("fetch")
def fetch(
    exploration_id: OptionalId = None,
    *,
    folder: Annotated[
        Path, typer.Option("--folder", "-o", help="Where the files go.", show_default=False)
    ],
    trial_id: Annotated[
        str | None,
        typer.Option("--trial", "-t", help="Trial of the model; not given: that of the best one."),
    ] = None,
) -> None:
    """Copy the files of a model, by default the best; the search must have save_models."""
    with _exploration(exploration_id) as exploration:
        files = exploration.fetch(folder, trial_id)
    Messages().info(f"{folder} holds {', '.join(path.name for path in files)}")


@app.command("pause")
def pause(exploration_id: OptionalId = None) -> None:
    """Start no more trials; those that run continue."""
    with _exploration(exploration_id) as exploration:
        exploration.pause()
        Messages().info(f"Exploration {exploration.id} is paused")


@app.command("resume")
def resume(exploration_id: OptionalId = None) -> None:
    """Go on with a paused, stopped or failed search."""
    with _exploration(exploration_id) as exploration:
        exploration.resume()
        Messages().info(f"Exploration {exploration.id} goes on")


@app.command("stop")
def stop(exploration_id: OptionalId = None) -> None:
    """Stop the strategy and all trials; `resume` continues later."""
    with _exploration(exploration_id) as exploration:
        exploration.stop()
        Messages().info(f"Exploration {exploration.id} is stopped")


@contextmanager
def _exploration(word: str | None) -> Iterator[RemoteExploration]:
    """Yield the handle of the exploration that a word means: its id, its start, or None."""
    from nni.cli.session import experiment
    from nni.nas.experiment.remote_exploration import RemoteExploration

    with experiment(word) as (client, exploration_id):
        yield RemoteExploration(exploration_id, client)


def _show(found: ExplorationStatus) -> None:
    messages = Messages()
    name = f" ({found.name})" if found.name else ""
    messages.line(f"Exploration {found.id}{name}: {found.state}")
    models = ", ".join(f"{count} {state}" for state, count in sorted(found.trials.items()))
    rows = [
        ("strategy", found.strategy),
        ("evaluator", found.evaluator),
        ("format", found.model_format),
        ("concurrency", found.concurrency),
        ("models", models or "none"),
        ("limit", "none" if found.limit is None else found.limit),
        ("best", found.best),
    ]
    messages.line(table(("Field", "Value"), rows))
    for error in found.errors:
        messages.error(error)


def _record(model: ExploredModel) -> dict[str, Any]:
    return {**asdict(model), "value": model.value}
