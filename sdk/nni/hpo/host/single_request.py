"""Tries a class before its experiment exists: can it be imported, and is it of its kind?

Nothing is constructed: a constructor that refuses its arguments ends the experiment with the
status ERROR and its message in `dispatcher.log`.
"""

import contextlib
import json
import sys
import traceback
from typing import Any, TextIO

from nni.hpo.registry import factory


def run_check(requests: TextIO, answers: TextIO) -> int:
    """Read one request, write one answer; return the exit code 0.

    Args:
        requests: JSON object with `kind` and either `name`, or `class_name` and perhaps
            `code_directory`.
        answers: gets a last line `{"ok": true, "lookahead": bool}` or
            `{"ok": false, "error": "...", "traceback": "..."}`; what the module itself prints goes
            to stderr.
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
    except (Exception, SystemExit) as error:  # noqa: BLE001 - rim of the user's code
        return {
            "ok": False,
            "error": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
        }
    return {"ok": True, "lookahead": bool(getattr(cls, "lookahead", False))}


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
