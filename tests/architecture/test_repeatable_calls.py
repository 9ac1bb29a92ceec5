"""Every changing call can be repeated: it has a request id or a documented reason."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import MethodDescriptor

from tests.support.deployment import ROOT

READS = (
    *("Get", "List", "Describe", "Export", "Follow", "Wait", "Count", "Explain", "Diagnose"),
    *("Replay", "Save", "Validate", "Measure", "Find", "Check", "Download", "PrepareDownload"),
)
"""Starts of the names of calls that change nothing."""
REPEATABLE = {
    "Upload": "bytes lie under their own hash",
    "PrepareUpload": "bytes lie under their own hash",
    "CompleteUpload": "bytes lie under their own hash",
    "CreatePool": "the same content again is the pool that exists",
    "UpdatePool": "it replaces the whole definition",
    "DrainPool": "it says how the pool is to be, not what changes",
    "RemovePool": "a second call says that there is no such pool",
    "CleanPlatforms": "what was removed is not there a second time",
    "InviteRunner": "the word of a lost answer is known to none, and expires",
    "RevokeInvitations": "what is revoked is not there a second time",
    "CollectGarbage": "what was collected is not there a second time",
}
"""Calls that change something, need no request id, and why."""


def methods() -> Iterator[MethodDescriptor]:
    for path in sorted((ROOT / "proto" / "nni_proto").rglob("*_service.proto")):
        name = ".".join(path.relative_to(ROOT / "proto").with_suffix("").parts) + "_pb2"
        for service in importlib.import_module(name).DESCRIPTOR.services_by_name.values():
            yield from service.methods


def has_request_id(method: MethodDescriptor) -> bool:
    fields = method.input_type.fields_by_name
    messages = [one for one in (fields[name].message_type for name in fields) if one is not None]
    # A stream has the request id in its first message.
    return "request_id" in fields or any("request_id" in one.fields_by_name for one in messages)


@pytest.mark.parametrize("method", list(methods()), ids=lambda method: method.full_name)
def test_a_changing_call_carries_a_request_id(method: MethodDescriptor) -> None:
    reads = method.name.startswith(READS)

    assert reads or method.name in REPEATABLE or has_request_id(method)
