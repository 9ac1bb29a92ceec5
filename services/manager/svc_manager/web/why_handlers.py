"""Why trials are as they are, over REST."""

from __future__ import annotations

from starlette.responses import Response

from svc_manager.web import records
from svc_manager.web.route import Call, json_answer


async def explain_trial(call: Call) -> Response:
    """Say why a trial waits, was stopped or failed."""
    found = await call.installation.trials.explain(call.experiment_id, call.path["trial_id"])
    return json_answer(records.explanation(found))


async def explain_next(call: Call) -> Response:
    """Say why the next trial does not exist yet."""
    found = await call.installation.trials.explain(call.experiment_id)
    return json_answer(records.explanation(found))
