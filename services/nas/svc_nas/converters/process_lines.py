"""Lines of the pipes to and from a strategy's process; the README lists them."""

import json
from typing import Any

from svc_common.large_work import parse_foreign_json
from svc_nas.domain import strategy_lines
from svc_nas.domain.reports import Candidate


def line_of(line: strategy_lines.StrategyInput) -> str:
    """Return the JSON line for the process."""
    return first_line(_fields(line))


def first_line(fields: dict[str, Any]) -> str:
    """Return fields as a JSON line."""
    return json.dumps(fields, separators=(",", ":")) + "\n"


def _fields(line: strategy_lines.StrategyInput) -> dict[str, Any]:
    match line:
        case strategy_lines.Added(key, parameters):
            return {"op": "added", "key": key, "parameters": parameters}
        case strategy_lines.Scheduled(key, trial_id):
            return {"op": "scheduled", "key": key, "trial_id": trial_id}
        case strategy_lines.Lost(key):
            return {"op": "lost", "key": key}
        case strategy_lines.Measured(key, value, is_final):
            return {"op": "metric", "key": key, "value": value, "is_final": is_final}
        case strategy_lines.Ended(key, succeeded):
            return {"op": "ended", "key": key, "succeeded": succeeded}
        case strategy_lines.Closed(reason, is_final):
            return {"op": "closed", "reason": reason, "is_final": is_final}
        case strategy_lines.Opened():
            return {"op": "opened"}
        case strategy_lines.Resized(concurrency):
            return {"op": "concurrency", "value": concurrency}


def output_of(line: bytes) -> strategy_lines.StrategyOutput:
    """Decode a JSON line of the process to a strategy output; raise for an invalid one.

    Raises:
        ValueError: it is no JSON object, or has no known meaning.
        KeyError: a field is missing.
    """
    fields = parse_foreign_json(line)
    if not isinstance(fields, dict):
        raise ValueError(f"a line must be a JSON object, got {line[:80]!r}")  # noqa: TRY004 - a bad line
    match fields:
        case {"candidate": str(key)}:
            return strategy_lines.Submitted(Candidate(key, fields["parameters"]))
        case {"kill": str(trial_id)}:
            return strategy_lines.StopWanted(trial_id)
        case {"ready": True}:
            return strategy_lines.Ready()
        case {"exhausted": True}:
            return strategy_lines.Exhausted()
        case {"failed": str(reason)}:
            return strategy_lines.Failed(reason)
    raise ValueError(f"a line has no known meaning: {line[:80]!r}")
