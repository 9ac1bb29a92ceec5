"""REST record of remarks."""

from __future__ import annotations

from nni_proto.common.v1 import remarks_pb2
from svc_manager.web.records.remarks import remarks_record


def test_unset_remarks_have_all_fields() -> None:
    assert remarks_record(remarks_pb2.Remarks()) == {"note": "", "tags": [], "starred": False}
