"""`nnictl update`: change a running experiment."""

from __future__ import annotations

from typing import Annotated

import typer

from nni.cli.options import Filename, OptionalId
from nni.cli.output import Messages

app = typer.Typer(help="Change a running experiment.", no_args_is_help=True)

Count = Annotated[
    int, typer.Option("--value", "-v", min=1, show_default=False, help="The new value, >= 1.")
]
Duration = Annotated[
    str,
    typer.Option(
        "--value", "-v", show_default=False, help="A number and s, m, h or d, such as 2h."
    ),
]


@app.command("searchspace")
def searchspace(filename: Filename, id: OptionalId = None) -> None:  # noqa: A002 - documented
    """Replace the search space by that of a JSON file."""
    from nni.cli.session import experiment
    from nni.experiment.config.yaml_file import read_json_or_yaml
    from nni_wire.values import to_value

    space = to_value(read_json_or_yaml(filename, "--filename"))
    with experiment(id) as (client, experiment_id):
        client.update(experiment_id, search_space=space)
    _done("searchSpace")


@app.command("tuner")
def tuner(filename: Filename, id: OptionalId = None) -> None:  # noqa: A002 - documented
    """Hand over to the tuner of a file, which learns all results.

    The file holds `tuner`, or `tuners` and `tunerPolicy`, as in a configuration. Trials that run go
    on. The assessor stays.
    """
    from nni.cli.session import experiment
    from nni.experiment.config.replacement_tuner import load_replacement_tuner
    from nni.experiment.conversion import algorithm_to_proto

    message = algorithm_to_proto(load_replacement_tuner(filename))
    with experiment(id) as (client, experiment_id):
        client.update(experiment_id, tuner=message)
    _done("tuner")


@app.command("concurrency")
def concurrency(value: Count, id: OptionalId = None) -> None:  # noqa: A002 - documented
    """Set how many trials may be live at once."""
    from nni.cli.session import experiment

    with experiment(id) as (client, experiment_id):
        client.update(experiment_id, trial_concurrency=value)
    _done("trialConcurrency")


@app.command("duration")
def duration(value: Duration, id: OptionalId = None) -> None:  # noqa: A002 - documented
    """Set how long the experiment may run."""
    from nni.cli.session import experiment
    from nni.experiment.config.quantities import duration_seconds
    from nni.experiment.conversion import duration_message
    from nni.experiment.errors import ConfigError, Problem

    try:
        seconds = duration_seconds(value)
    except ValueError as error:
        raise ConfigError([Problem("--value", str(error), value)]) from error
    with experiment(id) as (client, experiment_id):
        client.update(experiment_id, max_experiment_duration=duration_message(seconds))
    _done("maxExperimentDuration")


@app.command("trialnum")
def trialnum(value: Count, id: OptionalId = None) -> None:  # noqa: A002 - documented
    """Set how many trials may ever be created."""
    from nni.cli.session import experiment

    with experiment(id) as (client, experiment_id):
        client.update(experiment_id, max_trial_number=value)
    _done("maxTrialNumber")


@app.command("agents")
def agents(
    id: OptionalId = None,  # noqa: A002 - documented
    *,
    min_agents: Annotated[
        int | None, typer.Option(help="Agents that stay without trials.", show_default=False)
    ] = None,
    max_agents: Annotated[
        int | None, typer.Option(help="Most agents at once.", show_default=False)
    ] = None,
    idle_time: Annotated[
        str | None,
        typer.Option(
            help="Time after which an agent without trials ends, such as 10m.", show_default=False
        ),
    ] = None,
    max_agent_time: Annotated[
        str | None,
        typer.Option(
            help="Time of all agents together, used time included, such as 50h.",
            show_default=False,
        ),
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Most that this time may cost.", show_default=False)
    ] = None,
    cost_per_agent_hour: Annotated[
        float | None, typer.Option(help="Price of one agent for an hour.", show_default=False)
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            help="Limit that no longer holds, such as max-agents; may be repeated.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Set limits of the agents that platforms start for the experiment.

    Limits that are not named stay. Running agents follow the new ones at once. For an experiment
    in a pool of the installation, use nnictl pool update.
    """
    from nni.cli.session import experiment
    from nni.experiment.config.agent_limits import agent_limits
    from nni.experiment.conversion import agent_limits_to_proto

    given = {
        "min_agents": min_agents,
        "max_agents": max_agents,
        "idle_time": idle_time,
        "max_agent_time": max_agent_time,
        "max_cost": max_cost,
        "cost_per_agent_hour": cost_per_agent_hour,
        "remove": remove or None,
    }
    message = agent_limits_to_proto(agent_limits(given))
    with experiment(id) as (client, experiment_id):
        client.update_agent_limits(experiment_id, message)
    _done("agentLimits")


def _done(what: str) -> None:
    Messages().info(f"Update {what} success!")
