"""Arguments and options that several commands share, with their documented spellings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from nni.cli.completion import experiment_ids, trial_ids

OptionalId: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="[ID]",
        show_default=False,
        help="The experiment: its id or the start of it. Default: the one that is running.",
        autocompletion=experiment_ids,
    ),
]
RequiredId: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        show_default=False,
        help="The experiment's id.",
        autocompletion=experiment_ids,
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Port: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--port",
        "-p",
        min=1,
        max=65535,
        show_default=False,
        help="Port of the experiment's page. Default: 8080, or the next free one.",
    ),
]
Debug: TypeAlias = Annotated[bool, typer.Option("--debug", "-d", help="Log more.")]
Foreground: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--foreground", "-f", help="Stay and print log and progress; Ctrl-C stops the experiment."
    ),
]
OnExitOption: TypeAlias = Annotated[
    Literal["stop", "leave"],
    typer.Option(
        "--on-exit",
        "--on_exit",
        help="Fate of the experiment when Ctrl-C, TERM or HUP ends --foreground.",
    ),
]
UrlPrefix: TypeAlias = Annotated[
    str,
    typer.Option(
        "--url_prefix",
        "--url-prefix",
        "-u",
        help="Serve page and REST below this path.",
        metavar="PATH",
    ),
]
ExperimentDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--experiment_dir",
        "--experiment-dir",
        "-e",
        show_default=False,
        help="The experiment's folder, if it lies elsewhere now.",
    ),
]
TrialId: TypeAlias = Annotated[
    str,
    typer.Option(
        "--trial_id",
        "--trial-id",
        "-T",
        show_default=False,
        help="The trial's id.",
        autocompletion=trial_ids,
    ),
]
OptionalTrialId: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--trial_id",
        "--trial-id",
        "-T",
        show_default=False,
        help="The trial. Default: all.",
        autocompletion=trial_ids,
    ),
]
Filename: TypeAlias = Annotated[
    Path, typer.Option("--filename", "-f", show_default=False, help="The file.")
]
