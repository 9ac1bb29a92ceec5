"""The child's side of checks, called in this process."""

import io
import subprocess
import sys

import pytest

from nni_proto.tuning.v1 import algorithm_service_pb2 as pb
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_dispatcher.adapters.check_frames import read_frame, result_of, write_frame
from svc_dispatcher.check_child import answer, serve
from svc_dispatcher.domain.values import Check


def payload(**fields: object) -> bytes:
    request = pb.ValidateAlgorithmsRequest(
        search_space=to_value({"x": {"_type": "uniform", "_value": [0, 1]}}),
        **fields,  # type: ignore[arg-type] # fields of a test
    )
    request.tuner.name = "Random"
    return Check.ALGORITHMS.value + request.SerializeToString()


def test_requests_are_answered_in_order_until_the_stream_ends() -> None:
    requests, replies = io.BytesIO(), io.BytesIO()
    for interpreter in ("/a", "/b"):
        write_frame(requests, payload(interpreter=interpreter))
    requests.seek(0)

    serve(requests, replies)
    replies.seek(0)

    found = [result_of(read_frame(replies) or b"")["interpreter"] for _ in range(2)]
    assert found == ["/a", "/b"]
    assert read_frame(replies) is None


def test_child_cannot_be_inspected_by_user_code_of_its_account() -> None:
    script = (
        "import ctypes, os, sys; from svc_dispatcher import check_child\n"
        "sys.argv[1:] = [str(os.getppid())]\n"
        "code = check_child.main()\n"
        "sys.exit(code or 10 + ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"  # PR_GET_DUMPABLE
    )

    done = subprocess.run(
        [sys.executable, "-c", script], stdin=subprocess.DEVNULL, timeout=60, check=False
    )

    assert done.returncode == 10


def test_refusal_of_a_large_value_is_short() -> None:
    request = pb.ValidateAlgorithmsRequest()
    request.tuner.name = "TPE"
    request.tuner.class_args.CopyFrom(to_value(["x" * 1_000_000]))

    reply = answer(Check.ALGORITHMS.value + request.SerializeToString())

    assert len(reply) < 10_000
    with pytest.raises(InvalidArgumentError, match=r"tuner\.classArgs must be a map"):
        result_of(reply)
