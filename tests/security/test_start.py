"""Refusal of service processes to start where their traffic could be read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers import NatsServer, nats_server

TOKEN = "a token of enough characters"


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> object:
    with nats_server(tmp_path_factory.mktemp("bus"), TOKEN) as server:
        yield server


def start(folder: Path, module: str, variables: dict[str, str]) -> tuple[int, str]:
    """Start a service that must refuse; return its exit code and the reported reason."""
    reader, writer = os.pipe()
    clean = {name: text for name, text in os.environ.items() if not name.startswith("NNI_")}
    done = subprocess.run(
        [sys.executable, "-P", "-m", module],
        env={**clean, "NNI_HOME": str(folder), **variables, "NNI_READY_FD": str(writer)},
        pass_fds=(writer,),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as report:
        line = report.readline()
    return done.returncode, str(json.loads(line)["error"])


@pytest.mark.parametrize(
    ("module", "variables", "reason"),
    [
        ("svc_manager", {"NNI_MANAGER_GRPC": "0.0.0.0:0"}, "NNI_MANAGER_GRPC is '0.0.0.0'"),
        ("svc_manager", {"NNI_MANAGER_HTTP": "0.0.0.0:0"}, "NNI_MANAGER_HTTP is '0.0.0.0'"),
        ("svc_dispatcher", {"NNI_DISPATCHER_GRPC": "0.0.0.0:0"}, "NNI_DISPATCHER_GRPC is '0.0"),
        ("svc_compressor", {"NNI_COMPRESSOR_GRPC": "0.0.0.0:0"}, "NNI_COMPRESSOR_GRPC is '0.0"),
        ("svc_nas", {"NNI_NAS_GRPC": "0.0.0.0:0"}, "NNI_NAS_GRPC is '0.0.0.0'"),
        ("svc_trial_runner", {"NNI_RUNNER_GRPC": "0.0.0.0:0"}, "NNI_RUNNER_GRPC is '0.0.0.0'"),
        ("svc_manager", {"NNI_NATS_URL": "nats://192.0.2.7"}, "NNI_NATS_URL names '192.0.2.7'"),
        ("svc_dispatcher", {"NNI_NATS_URL": "nats://192.0.2.7"}, "NNI_NATS_URL names '192.0.2"),
        ("svc_compressor", {"NNI_NATS_URL": "nats://192.0.2.7"}, "NNI_NATS_URL names '192.0.2"),
        ("svc_nas", {"NNI_NATS_URL": "nats://192.0.2.7"}, "NNI_NATS_URL names '192.0.2.7'"),
        ("svc_trial_runner", {"NNI_NATS_URL": "nats://192.0.2.7"}, "NNI_NATS_URL names '192."),
        ("svc_manager", {"NNI_REDIS_URL": "redis://:x@192.0.2.7/0"}, "NNI_REDIS_URL names '192"),
        ("svc_manager", {"NNI_DISPATCHER_GRPC": "192.0.2.7:1"}, "'192.0.2.7', which is another"),
        ("svc_manager", {"NNI_COMPRESSOR_GRPC": "192.0.2.7:1"}, "'192.0.2.7', which is another"),
        ("svc_manager", {"NNI_NAS_GRPC": "192.0.2.7:1"}, "'192.0.2.7', which is another"),
        (
            "svc_dispatcher",
            {
                "NNI_S3_ENDPOINT": "http://192.0.2.7",
                "NNI_S3_ACCESS_KEY": "a",
                "NNI_S3_SECRET_KEY": "b",
            },
            "NNI_S3_ENDPOINT names '192.0.2.7'",
        ),
        ("svc_manager", {"NNI_TLS_CERT_FILE": "/c"}, "NNI_TLS_KEY_FILE must be set"),
        ("svc_manager", {"NNI_ACCESS_FILE": "/missing"}, "NNI_ACCESS_FILE must be readable"),
        (
            "svc_manager",
            {"NNI_INSECURE": "1", "NNI_TOKEN": TOKEN[:15], "NNI_MANAGER_HTTP": "0.0.0.0:0"},
            "NNI_TOKEN must have at least 16",
        ),
    ],
)
def test_what_is_not_safe_does_not_start(
    tmp_path: Path, bus: NatsServer, module: str, variables: dict[str, str], reason: str
) -> None:
    given = {
        "NNI_NATS_URL": bus.url,
        "NNI_TOKEN": TOKEN,
        "NNI_DISPATCHER_GRPC": "127.0.0.1:1" if module == "svc_manager" else "127.0.0.1:0",
        **variables,
    }

    code, said = start(tmp_path, module, given)

    assert code == 1
    assert reason in said
    assert TOKEN not in said
