"""`nnictl completion`, and the ids that shells complete: experiments, trials, agents, pools.

Completion starts nothing, waits a second for an answer and is silent about errors: a key that was
pressed must never print a message into the line. Only plain ids are offered, never names or
messages from outside, since a shell may evaluate what it gets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import typer

from nni.cli.output import echo

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient

Candidates: TypeAlias = list[tuple[str, str]]
"""Words with a short explanation each."""

_PROGRAM: Final = "nnictl"
_VARIABLE: Final = "_NNICTL_COMPLETE"
_TIMEOUT_S: Final = 1.0
_MOST: Final = 200
"""Words that are offered; more of them help no one."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*\Z")


def register(app: typer.Typer) -> None:
    """Add the command `completion` to ``app``."""
    app.command("completion")(completion)


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="bash|zsh|fish", show_default=False, help="The shell."),
    ],
) -> None:
    """Print the script by which a shell completes commands, options and ids.

    bash: `eval "$(nnictl completion bash)"` in ~/.bashrc. zsh: the same with zsh in ~/.zshrc, after
    compinit. fish: `nnictl completion fish > ~/.config/fish/completions/nnictl.fish`.
    """
    from typer import completion as scripts

    script: str = scripts.get_completion_script(  # type: ignore[attr-defined] # not in its __all__
        prog_name=_PROGRAM, complete_var=_VARIABLE, shell=shell
    )
    echo(script)


def experiment_ids(incomplete: str) -> Candidates:
    """Return the ids of experiments that start with a text, those that run first."""
    found = _rest("experiments-info?all=true")
    words = [
        (str(one.get("id", "")), str(one.get("status", "")))
        for one in (found if isinstance(found, list) else [])
        if isinstance(one, dict)
    ]
    words.sort(key=lambda word: word[1] in {"STOPPED", "DONE", "ERROR"})
    return offered(words, incomplete)


def trial_ids(ctx: typer.Context, incomplete: str) -> Candidates:
    """Return the ids of trials that start with a text, of the experiment in the command line.

    Args:
        ctx: of the command so far.
        incomplete: what is written of the id.
    """
    # An option without its value, which is being written, leaves the arguments before it unparsed.
    chosen = ctx.params.get("id") or next(iter(ctx.args), None)
    if not isinstance(chosen, str):
        running = [word for word, state in experiment_ids("") if state == "RUNNING"]
        chosen = running[0] if len(running) == 1 else ""
    if not _PLAIN.match(chosen):
        return []
    found = _rest(f"experiments/{chosen}/trial-jobs?limit={_MOST}")
    words = [
        (str(one.get("trialJobId", one.get("id", ""))), str(one.get("status", "")))
        for one in (found if isinstance(found, list) else [])
        if isinstance(one, dict)
    ]
    return offered(words, incomplete)


def runner_ids(incomplete: str) -> Candidates:
    """Return the ids of agents that start with a text."""
    return _listed(
        lambda client: [(one.runner_id, one.pool) for one in client.runners()], incomplete
    )


def pool_names(incomplete: str) -> Candidates:
    """Return the names of pools that start with a text."""
    return _listed(
        lambda client: [(one.definition.pool, "pool") for one in client.pools()], incomplete
    )


def offered(words: Iterable[tuple[str, str]], incomplete: str) -> Candidates:
    """Return at most 200 of the words: those that begin with a text and are plain ids."""
    fitting = [
        (word, note if _PLAIN.match(note) else "")
        for word, note in words
        if word.startswith(incomplete) and _PLAIN.match(word)
    ]
    return fitting[:_MOST]


def _rest(path: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON of a REST path of running services; None on an error or after a second."""
    from nni.experiment.endpoint import read_endpoint
    from nni.experiment.errors import ExperimentError
    from nni.experiment.rest import get_json

    with suppress(ExperimentError, OSError, ValueError):
        endpoint = read_endpoint(_TIMEOUT_S)
        if endpoint is not None:
            url = f"{endpoint.http.rstrip('/')}/api/v1/nni/{path}"
            return get_json(url, endpoint.token, _TIMEOUT_S)
    return None


def _listed(
    read: Callable[[ManagerClient], Iterable[tuple[str, str]]], incomplete: str
) -> Candidates:
    from nni.experiment.client import ManagerClient
    from nni.experiment.endpoint import read_endpoint
    from nni.experiment.errors import ExperimentError

    with suppress(ExperimentError, OSError, ValueError):
        endpoint = read_endpoint(_TIMEOUT_S)
        if endpoint is not None:
            with ManagerClient(endpoint, restart_s=0.0, call_limit_s=_TIMEOUT_S) as client:
                return offered(read(client), incomplete)
    return []
