"""Commands to JSON lines for a child host, and its lines to outputs."""

import json
from collections.abc import Callable
from typing import Any, Final, Literal

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import from_value
from svc_dispatcher.converters.log_messages import as_value, payload_of
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
    try:
        output = _understood(json.loads(line))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"the host said what it should not ({reason}): {line!r:.200}") from error
    if output is None:
        raise ValueError(f"the host said what it should not: {line!r:.200}")
    return output


def _understood(message: dict[str, Any]) -> answers.Output | None:
    if "done" in message:
        return answers.Done(_position(message["done"]))
    position = _position(message["position"])
    for key, convert in _OUTPUTS.items():
        if key in message:
            return convert(position, message)
    return None


def _position(pair: Any) -> Position:  # noqa: ANN401 - what a host said
    sequence, place = pair
    return Position(_whole(sequence), _whole(place))


def _whole(number: Any) -> int:  # noqa: ANN401 - what a host said
    if type(number) is not int:
        raise TypeError(f"an integer is needed, got {number!r:.40}")
    return number


def _text(text: Any) -> str:  # noqa: ANN401 - what a host said
    if not isinstance(text, str):
        raise TypeError(f"a text is needed, got {text!r:.40}")
    return text


def _flag(flag: Any) -> bool:  # noqa: ANN401 - what a host said
    if not isinstance(flag, bool):
        raise TypeError(f"true or false is needed, got {flag!r:.40}")
    return flag


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
        "plan": plan_of(setup.objectives),
        "seed": command.seed,
        "log_level": setup.log_level,
        "checkpoint": f"{setup.directory}/{CHECKPOINT_NAME}",
        "eager": eager,
    }


def plan_of(payload: Payload) -> dict[str, Any] | None:
    """Give what an experiment wants beside its tuner and its space; None if that is nothing.

    Args:
        payload: its configuration, where the converter has put it.
    """
    if not isinstance(payload, config_pb2.ExperimentConfig):
        return None
    search = payload.search
    limits: tuple[Literal["no_improvement", "target", "regret_bound"], ...]
    limits = ("no_improvement", "target", "regret_bound")
    plan: dict[str, Any] = {
        "objectives": [
            {"metric": objective.metric, "mode": _mode(objective)}
            for objective in payload.objectives
        ],
        "constraints": [{"metric": item.metric, "max": item.max} for item in payload.constraints],
        "duplicates": search.duplicates if search.duplicates != "replicate" else "",
        "enqueue": [from_value(item) for item in search.enqueue],
        "known": from_value(search.known) if search.HasField("known") else [],
        "stop": {name: getattr(search.stop, name) for name in limits if search.stop.HasField(name)},
    }
    return plan if any(plan.values()) else None


def _mode(objective: metric_pb2.Objective) -> str:
    maximized = objective.mode == metric_pb2.OPTIMIZE_MODE_MAXIMIZE
    return "maximize" if maximized else "minimize"


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
        "own": True,
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
        Suggestion(_whole(parameter_id), payload_of(parameters), payload_of(provenance))
        for parameter_id, parameters, provenance in items
    )


def _ready(_: Position, message: dict[str, Any]) -> answers.Output:
    ready = message["ready"]
    provenance = tuple((name, _text(text)) for name, text in ready["provenance"].items())
    return answers.Ready(_flag(ready["lookahead"]), _flag(ready["assesses"]), provenance)


def _generated(position: Position, message: dict[str, Any]) -> answers.Output:
    return answers.Generated(
        position,
        _text(message["request_id"]),
        _suggestions(message["parameters"]),
        _flag(message["exhausted"]),
        _whole(message["deferred"]),
        tuple(map(_text, message.get("released", ()))),
    )


def _failed(position: Position, message: dict[str, Any]) -> answers.Output:
    failed = message["failed"]
    return answers.CallFailed(
        position, _text(failed["call"]), _text(failed["traceback"]), _flag(failed["skipped"])
    )


def _diverged(position: Position, message: dict[str, Any]) -> answers.Output:
    parameter_id, recorded, replayed = message["diverged"]
    return answers.Diverged(
        position, _whole(parameter_id), payload_of(recorded), payload_of(replayed)
    )


_OUTPUTS: Final[dict[str, Callable[[Position, dict[str, Any]], answers.Output]]] = {
    "parameters": _generated,
    "stop": lambda position, m: answers.StopAdvised(position, _text(m["stop"])),
    "late": lambda position, m: answers.Generated(
        position, "", _suggestions(m["late"]), _flag(m.get("exhausted", False))
    ),
    "failed": _failed,
    "diverged": _diverged,
    "ready": _ready,
    "unbuildable": lambda position, m: answers.Unbuildable(
        position, _text(m["unbuildable"]), _text(m["traceback"])
    ),
}
