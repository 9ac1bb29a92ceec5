"""Handlers of remarks: note, tags and star of an experiment or a trial."""

from __future__ import annotations

from starlette.responses import Response

from svc_common.errors import InvalidArgumentError
from svc_manager.domain.inputs import ChangeRemarks
from svc_manager.web.records.remarks import remarks_record
from svc_manager.web.route import Call, json_response


async def change_experiment_remarks(call: Call) -> Response:
    """Change the fields of the experiment's remarks that the body has; respond with all of them."""
    return await _change(call, "")


async def change_trial_remarks(call: Call) -> Response:
    """Change the fields of a trial's remarks that the body has; respond with all of them."""
    return await _change(call, call.path["trial_id"])


async def _change(call: Call, trial_id: str) -> Response:
    found = await call.dependencies.experiments.change_remarks(
        call.experiment_id, change_from(trial_id, call.body), call.request_id
    )
    return json_response(remarks_record(found))


def change_from(trial_id: str, body: object) -> ChangeRemarks:
    """Parse a body to a change of remarks, absent fields as None; raise if none or of a bad type.

    Raises:
        InvalidArgumentError: the body or a field has a wrong type, or it has none of the fields.
    """
    if not isinstance(body, dict) or not body.keys() & {"note", "tags", "starred"}:
        raise InvalidArgumentError("body", "must be an object with note, tags or starred")
    note, tags, starred = body.get("note"), body.get("tags"), body.get("starred")
    if note is not None and not isinstance(note, str):
        raise InvalidArgumentError("note", "must be a text", note)
    if tags is not None and not (
        isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)
    ):
        raise InvalidArgumentError("tags", "must be a list of texts", tags)
    if starred is not None and not isinstance(starred, bool):
        raise InvalidArgumentError("starred", "must be true or false", starred)
    return ChangeRemarks(trial_id, note, None if tags is None else tuple(tags), starred)
