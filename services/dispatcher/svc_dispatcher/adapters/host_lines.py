"""Commands to JSON lines for a child host, and its lines to outputs."""

import json
from collections.abc import Callable
from typing import Any, Final

from nni_wire.values import from_value
from svc_dispatcher.converters import as_value, payload_of
from svc_dispatcher.domain import answers, commands
from svc_dispatcher.domain.values import AlgorithmChoice, Payload, Position, Suggestion

CHECKPOINT_NAME: Final = "checkpoint/algorithm.json"
"""In the experiment's folder: what the host may go on from."""


def line_of(command: commands.Command, *, eager: bool) -> str:
    """Give the line that tells a host one command.

    Args:
        command: what to tell.
        eager: for `Initialize`: report each handled command at once.
    """
    if isinstance(command, commands.Initialize):
        body = _initialize(command, eager=eager)
    else:
        body = _BODIES[type(command)](command)
    return json.dumps({"position": command.position, **body}, separators=(",", ":")) + "\n"


def output_of(line: bytes) -> answers.Output:
    """Give what one line of a host says.

    Raises:
        ValueError: the host does not speak the protocol, or a value is nested too deeply.
    """
    message = json.loads(line)
    if "done" in message:
        return answers.Done(Position(*message["done"]))
    position = Position(*message["position"])
    for key, convert in _OUTPUTS.items():
        if key in message:
            return convert(position, message)
    raise ValueError(f"the host said what it should not: {line!r:.200}")


def _plain(payload: Payload) -> Any:  # noqa: ANN401 - any JSON value
    return None if payload is None else from_value(as_value(payload))


def _initialize(command: commands.Initialize, *, eager: bool) -> dict[str, Any]:
    setup = command.setup
    return {
        "op": "initialize",
        "experiment_id": setup.experiment_id,
        "tuner": _choice(setup.tuner),
        "assessor": _choice(setup.assessor),
        "advisor": _choice(setup.advisor),
        "search_space": _plain(command.search_space),
        "seed": command.seed,
        "log_level": setup.log_level,
        "checkpoint": f"{setup.directory}/{CHECKPOINT_NAME}",
        "eager": eager,
    }


def _choice(choice: AlgorithmChoice | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    return {
        "name": choice.name,
        "class_name": choice.class_name,
        "code_directory": choice.code_directory,
        "class_args": _plain(choice.class_args) or {},
    }


def _metric(c: commands.TellMetric) -> dict[str, Any]:
    return {
        "op": "metric",
        "metric": (
            c.trial_id,
            c.attempt,
            c.parameter_id,
            c.final,
            c.sequence,
            _plain(c.value),
            c.customized,
        ),
    }


_BODIES: Final[dict[type, Callable[[Any], dict[str, Any]]]] = {
    commands.Generate: lambda c: {
        "op": "generate",
        "request_id": c.request_id,
        "parameter_ids": c.parameter_ids,
        "replayed": c.replayed,
    },
    commands.Recorded: lambda c: {
        "op": "recorded",
        "parameters": [(id_, _plain(parameters)) for id_, parameters in c.parameters],
    },
    commands.TellMetric: _metric,
    commands.TellEnd: lambda c: {
        "op": "trial_end",
        "end": (c.trial_id, c.parameter_id, c.state, c.customized),
    },
    commands.ImportData: lambda c: {"op": "import_data", "data": _plain(c.data)},
    commands.ImportTrials: lambda c: {
        "op": "import_data",
        "data": [
            {"parameter": _plain(parameters), "value": _plain(value)}
            for parameters, value in c.samples
        ],
    },
    commands.UpdateSearchSpace: lambda c: {
        "op": "update_search_space",
        "search_space": _plain(c.search_space),
    },
    commands.AddCustomized: lambda c: {
        "op": "add_customized",
        "parameter_id": c.parameter_id,
        "parameters": _plain(c.parameters),
    },
}


def _suggestions(items: list[Any]) -> tuple[Suggestion, ...]:
    return tuple(
        Suggestion(parameter_id, payload_of(parameters), payload_of(provenance))
        for parameter_id, parameters, provenance in items
    )


def _ready(_: Position, message: dict[str, Any]) -> answers.Output:
    ready = message["ready"]
    return answers.Ready(ready["lookahead"], ready["assesses"], tuple(ready["provenance"].items()))


def _generated(position: Position, message: dict[str, Any]) -> answers.Output:
    return answers.Generated(
        position,
        message["request_id"],
        _suggestions(message["parameters"]),
        message["exhausted"],
        message["deferred"],
    )


def _failed(position: Position, message: dict[str, Any]) -> answers.Output:
    failed = message["failed"]
    return answers.CallFailed(position, failed["call"], failed["traceback"], failed["skipped"])


def _diverged(position: Position, message: dict[str, Any]) -> answers.Output:
    parameter_id, recorded, replayed = message["diverged"]
    return answers.Diverged(position, parameter_id, payload_of(recorded), payload_of(replayed))


_OUTPUTS: Final[dict[str, Callable[[Position, dict[str, Any]], answers.Output]]] = {
    "parameters": _generated,
    "stop": lambda position, m: answers.StopAdvised(position, m["stop"]),
    "late": lambda position, m: answers.Generated(
        position, "", _suggestions(m["late"]), m.get("exhausted", False)
    ),
    "failed": _failed,
    "diverged": _diverged,
    "ready": _ready,
    "unbuildable": lambda position, m: answers.Unbuildable(
        position, m["unbuildable"], m["traceback"]
    ),
}
