import json
import os

import pytest

from svc_common.readiness import announce_failure, announce_ready


@pytest.mark.parametrize("ready", [True, False])
def test_readiness_is_one_line_on_the_inherited_pipe(
    ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    monkeypatch.setenv("NNI_READY_FD", str(writer))

    if ready:
        announce_ready({"grpc": "127.0.0.1:1"})
    else:
        announce_failure("port 8080 is taken")

    with os.fdopen(reader) as pipe:
        line = json.loads(pipe.read())
    expected = {"grpc": "127.0.0.1:1"} if ready else {"error": "port 8080 is taken"}
    assert line == {"ready": ready, **expected}
