"""Codec of the host protocol: commands to JSON lines, and JSON lines to outputs."""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final, Literal

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import from_value
from svc_common.large_work import AT_ONCE_BYTES, parse_foreign_json
from svc_dispatcher.converters.log_messages import as_value, payload_of
from svc_dispatcher.domain import answers, commands
from svc_dispatcher.domain.values import AlgorithmChoice, Payload, Position, Suggestion

CHECKPOINT_NAME: Final = "checkpoint/algorithm.json"
"""Checkpoint of the algorithm, in the experiment's folder."""
_SHOWN_BYTES: Final = 200
"""Beginning of an invalid line that messages show."""


def line_of(command: commands.Command, *, eager: bool, size_bytes: int = 0) -> str:
    """Encode a command and its position as a JSON line: in one call, or in steps if it is large.

    Args:
        command: the command.
        eager: for `Initialize`: the host reports each handled command at once.
        size_bytes: its `payload_bytes`; a large one is written in steps, for a thread.
    """
    body = {"position": command.position, **_body(command, eager=eager)}
    encoder = json.JSONEncoder(separators=(",", ":"))
    if size_bytes <= AT_ONCE_BYTES:
        return encoder.encode(body) + "\n"
    return "".join(chain(encoder.iterencode(body), "\n"))


def payload_bytes(command: commands.Command) -> int:
    """Return the size in bytes of the users' values in a command, summed until over a limit."""
    size_bytes = 0
    for payload in _payloads(command):
        if isinstance(payload, value_pb2.Value | config_pb2.ExperimentConfig):
            size_bytes += payload.ByteSize()
        if size_bytes > AT_ONCE_BYTES:
            break
    return size_bytes


def _payloads(  # noqa: C901 - one case per command
    command: commands.Command,
) -> Iterable[Payload]:
    match command:
        case commands.Initialize(setup=setup):
            return (command.search_space, setup.config, *command.running)
        case commands.Recorded(parameters=recorded):
            return (item for _, item in recorded)
        case commands.TellMetric():
            return (command.value,)
        case commands.ImportData():
            return (command.data,)
        case commands.ImportTrials(samples=samples):
            return chain.from_iterable(samples)
        case commands.ImportCurves(curves=curves):
            return chain.from_iterable((curve.parameters, *curve.intermediates) for curve in curves)
        case commands.ImportReports(reports=reports):
            return (report.value for report in reports)
        case commands.UpdateSearchSpace():
            return (command.search_space,)
        case commands.AddCustomized():
            return (command.parameters,)
        case commands.Generate() | commands.TellEnd():
            return ()


def output_of(line: bytes) -> answers.Output:
    """Parse one JSON line of a host to an output; raise ValueError if it breaks the protocol.

    Raises:
        ValueError: the line breaks the protocol, or a value is nested too deeply.
    """
    try:
        output = _parse(parse_foreign_json(line))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        shown = repr(line[:_SHOWN_BYTES])
        raise ValueError(f"the host sent an invalid message ({reason}): {shown}") from error
    if output is None:
        raise ValueError(f"the host sent an invalid message: {line[:_SHOWN_BYTES]!r}")
    return output


def _parse(message: dict[str, Any]) -> answers.Output | None:
    if "done" in message:
        return answers.Done(_position(message["done"]))
    position = _position(message["position"])
    for key, convert in _OUTPUTS.items():
        if key in message:
            return convert(position, message)
    return None


def _position(pair: Any) -> Position:  # noqa: ANN401 - unchecked JSON
    sequence, place = pair
    return Position(_whole(sequence), _whole(place))


def _whole(number: Any) -> int:  # noqa: ANN401 - unchecked JSON
    if type(number) is not int:
        raise TypeError(f"an integer is needed, got {number!r:.40}")
    return number


def _text(text: Any) -> str:  # noqa: ANN401 - unchecked JSON
    if not isinstance(text, str):
        raise TypeError(f"a text is needed, got {text!r:.40}")
    return text


def _flag(flag: Any) -> bool:  # noqa: ANN401 - unchecked JSON
    if not isinstance(flag, bool):
        raise TypeError(f"true or false is needed, got {flag!r:.40}")
    return flag


def _plain(payload: Payload) -> Any:  # noqa: ANN401 - any JSON value
    return None if payload is None else from_value(as_value(payload))


def _body(command: commands.Command, *, eager: bool) -> dict[str, Any]:
    match command:
        case commands.Initialize():
            return _initialize(command, eager=eager)
        case commands.Generate():
            return {
                "op": "generate",
                "request_id": command.request_id,
                "parameter_ids": command.parameter_ids,
                "replayed": command.replayed,
            }
        case commands.Recorded(parameters=recorded):
            return {"op": "recorded", "parameters": [(id_, _plain(item)) for id_, item in recorded]}
        case commands.TellMetric():
            return _metric(command)
        case commands.TellEnd():
            return _end(command)
        case commands.ImportData() | commands.ImportTrials() | commands.ImportCurves():
            return _import(command)
        case commands.ImportReports(reports=reports):
            return {"op": "import_reports", "reports": [_report(report) for report in reports]}
        case commands.UpdateSearchSpace():
            return {"op": "update_search_space", "search_space": _plain(command.search_space)}
        case commands.AddCustomized():
            return {
                "op": "add_customized",
                "parameter_id": command.parameter_id,
                "parameters": _plain(command.parameters),
            }


def _initialize(command: commands.Initialize, *, eager: bool) -> dict[str, Any]:
    setup = command.setup
    return {
        "op": "initialize",
        "experiment_id": setup.experiment_id,
        "tuner": _choice(setup.tuner),
        "assessor": _choice(setup.assessor),
        "advisor": _choice(setup.advisor),
        "search_space": _plain(command.search_space),
        "plan": plan_of(setup.config, command.running),
        "seed": command.seed,
        "log_level": setup.log_level,
        "checkpoint": f"{setup.directory}/{CHECKPOINT_NAME}",
        **({} if command.log_end is None else {"log_end": command.log_end}),
        "eager": eager,
    }


def plan_of(payload: Payload, running: Sequence[Payload] = ()) -> dict[str, Any] | None:
    """Return a host's search plan: objectives, limits, samples, stop rules; None if all are unset.

    Args:
        payload: configuration of the experiment.
        running: parameters of running trials, which are not enqueued again.
    """
    if not isinstance(payload, config_pb2.ExperimentConfig):
        return None
    search = payload.search
    started = [_plain(parameters) for parameters in running]
    limits: tuple[Literal["no_improvement", "target", "regret_bound"], ...]
    limits = ("no_improvement", "target", "regret_bound")
    plan: dict[str, Any] = {
        "objectives": [
            {"metric": objective.metric, "mode": _mode(objective)}
            for objective in payload.objectives
        ],
        "constraints": [{"metric": item.metric, "max": item.max} for item in payload.constraints],
        "duplicates": search.duplicates if search.duplicates != "replicate" else "",
        "enqueue": [item for item in map(from_value, search.enqueue) if item not in started],
        "known": from_value(search.known) if search.HasField("known") else [],
        "earlier": from_value(search.earlier) if search.HasField("earlier") else [],
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


def _metric(command: commands.TellMetric) -> dict[str, Any]:
    return {
        "op": "metric",
        "metric": (
            command.trial_id,
            command.attempt,
            command.parameter_id,
            command.final,
            command.sequence,
            _plain(command.value),
            command.customized,
        ),
    }


def _end(command: commands.TellEnd) -> dict[str, Any]:
    end = (command.trial_id, command.parameter_id, command.state, command.customized)
    body: dict[str, Any] = {"op": "trial_end", "end": end}
    if command.duration_s is not None:
        body["duration_s"] = command.duration_s
    return body


def _import(
    command: commands.ImportData | commands.ImportTrials | commands.ImportCurves,
) -> dict[str, Any]:
    match command:
        case commands.ImportData():
            return {"op": "import_data", "data": _plain(command.data)}
        case commands.ImportTrials():
            return _import_trials(command)
        case commands.ImportCurves():
            return _import_curves(command)


def _import_trials(command: commands.ImportTrials) -> dict[str, Any]:
    samples = [
        {"parameter": _plain(parameters), "value": _plain(value)}
        for parameters, value in command.samples
    ]
    for sample, proposer in zip(samples, command.proposers, strict=False):
        if proposer:
            sample["tuner"] = proposer
    for sample, duration_s in zip(samples, command.durations_s, strict=False):
        if duration_s is not None:
            sample["duration_s"] = duration_s
    return {"op": "import_data", "data": samples, "own": True}


def _import_curves(command: commands.ImportCurves) -> dict[str, Any]:
    curves = [
        {
            "parameter": _plain(curve.parameters),
            "value": None if curve.final is None else _plain(curve.final[0]),
            "intermediate": [_plain(value) for value in curve.intermediates],
        }
        for curve in command.curves
    ]
    return {"op": "import_curves", "curves": curves}


def _report(report: commands.PastReport) -> list[Any]:
    if report.end_state:
        return [report.trial_id, report.end_state]
    return [report.trial_id, report.attempt, report.sequence, _plain(report.value)]


def _suggestions(items: list[Any]) -> tuple[Suggestion, ...]:
    return tuple(
        Suggestion(_whole(parameter_id), payload_of(parameters), payload_of(provenance))
        for parameter_id, parameters, provenance in items
    )


def _ready(_: Position, message: dict[str, Any]) -> answers.Output:
    ready = message["ready"]
    provenance = tuple((name, _text(text)) for name, text in ready["provenance"].items())
    # Hosts run under the user's interpreter, whose `nni` may be older than this field.
    learned = tuple(map(_text, ready.get("learned_metrics", ())))
    return answers.Ready(_flag(ready["lookahead"]), _flag(ready["assesses"]), provenance, learned)


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
