"""Modes of the host with a single request: check of a custom class, hyperparameter importance.

The check constructs no object: a constructor that rejects its arguments ends the experiment with
the status ERROR and its message in `dispatcher.log`.
"""

import contextlib
import json
import sys
import traceback
from typing import Any, TextIO

from nni.hpo.host.architecture_values import as_hyperparameters, is_architecture_space
from nni.hpo.registry import factory


def run_check(requests: TextIO, answers: TextIO) -> int:
    """Read a request to check a class, write its result as a JSON line; always return exit code 0.

    Args:
        requests: JSON object with `kind` and either `name`, or `class_name` with an optional
            `code_directory`.
        answers: receives a last line `{"ok": true, "lookahead": bool}` or
            `{"ok": false, "error": "...", "traceback": "..."}`; output of the module goes to
            stderr.
    """
    request = json.load(requests)
    with contextlib.redirect_stdout(sys.stderr):
        answer = _check(request)
    json.dump(answer, answers)
    answers.write("\n")
    answers.flush()
    return 0


def _check(request: dict[str, Any]) -> dict[str, object]:
    try:
        if request.get("name"):
            cls = factory.named_class(request["kind"], request["name"])
        else:
            cls = factory.custom_class(
                request["kind"], request["class_name"], request.get("code_directory") or None
            )
    except (Exception, SystemExit) as error:  # noqa: BLE001 - boundary to user code
        return {
            "ok": False,
            "error": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
        }
    return {"ok": True, "lookahead": bool(getattr(cls, "lookahead", False))}


def run_importance(requests: TextIO, answers: TextIO) -> int:
    """Read space and trials, write hyperparameter importance or an error, as JSON; return 0.

    Args:
        requests: JSON object with `search_space`, `trials` (pairs of parameters and metric),
            `metric` and `optimize_mode`.
        answers: receives `{"shares": [[name, share], ...], "interactions": share, "trials": count}`
            or `{"error": "..."}`.
    """
    json.dump(_answer(json.load(requests)), answers)
    answers.write("\n")
    answers.flush()
    return 0


def _answer(request: dict[str, Any]) -> dict[str, object]:
    from nni.hpo.importance import importances

    space = request["search_space"]
    trials = [(parameters, metric) for parameters, metric in request["trials"]]
    if is_architecture_space(space):
        space, trials = as_hyperparameters(space, trials)
    try:
        found = importances(
            space,
            trials,
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
