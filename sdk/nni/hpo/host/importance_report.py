"""Computes the importance of hyperparameters for the dispatcher, which has no time for it."""

import json
from typing import Any, TextIO


def run_importance(requests: TextIO, answers: TextIO) -> int:
    """Read one request, write one answer; return the exit code 0.

    Args:
        requests: JSON object with `search_space`, `trials` (pairs of parameters and metric),
            `metric` and `optimize_mode`.
        answers: gets `{"shares": [[name, share], ...], "interactions": share, "trials": count}` or
            `{"error": "..."}`.
    """
    json.dump(_answer(json.load(requests)), answers)
    answers.write("\n")
    answers.flush()
    return 0


def _answer(request: dict[str, Any]) -> dict[str, object]:
    from nni.hpo.importance import importances

    try:
        found = importances(
            request["search_space"],
            [(parameters, metric) for parameters, metric in request["trials"]],
            metric=request["metric"],
            optimize_mode=request["optimize_mode"],
        )
    except ValueError as error:
        return {"error": str(error)}
    return {
        "shares": list(found.shares.items()),
        "interactions": found.interactions,
        "trials": found.trials,
    }
