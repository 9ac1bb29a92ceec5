"""REST record of remarks."""

from __future__ import annotations

from typing import Any

from nni_proto.common.v1 import remarks_pb2


def remarks_record(message: remarks_pb2.Remarks) -> dict[str, Any]:
    """Return remarks as JSON: note, tags and star."""
    return {"note": message.note, "tags": list(message.tags), "starred": message.starred}
