"""The entry point as a process; as root with another user for the service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import svc_common
from tests.support.public_packages import public_packages

OTHER = 65534
PUBLIC_PYTHON = Path("/usr/bin/python3")
"""Interpreter that another user can execute; that of the tests may be in a private folder."""
SERVICE = """
import json, os, subprocess, sys
from svc_common import environment, inspection
inspection.forbid_inspection()
environment.load_secrets()
key = open(os.environ["NNI_TLS_KEY_FILE"]).read()
again = open(os.environ["NNI_TLS_KEY_FILE"]).read()
spy = '''
import json, os, sys
parent = os.getppid()
found = {}
for name in (f"/proc/{parent}/environ", f"/proc/{parent}/fd", f"/proc/{parent}/mem", *sys.argv[1:]):
    try:
        if os.path.isdir(name):
            found[name] = os.listdir(name)
        else:
            found[name] = len(open(name, "rb").read(0))
    except OSError as error:
        found[name] = type(error).__name__
own = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) > 2
       and os.path.exists(f"/proc/self/fd/{fd}")]
print(json.dumps({"found": found, "own": own, "environment": dict(os.environ)}))
'''
done = subprocess.run([sys.executable, "-c", spy, *sys.argv[1:]], capture_output=True, text=True,
                      env=environment.for_user_code(), check=True)
print(json.dumps({"token": environment.text("NNI_TOKEN"), "key": [key, again],
                  "ids": [os.getuid(), os.getgid(), os.getgroups()],
                  "environment": dict(os.environ), "arguments": sys.orig_argv,
                  "spy": json.loads(done.stdout)}))
"""


@pytest.fixture(scope="module")
def packages() -> Iterator[Path]:
    """Return a folder with `svc_common` that another user can read."""
    with public_packages(Path(svc_common.__file__).parent) as folder:
        yield folder


def run(
    folder: Path, packages: Path, *options: str, python: str = sys.executable, **variables: str
) -> dict[str, Any]:
    secrets = folder / "secrets.env"
    secrets.write_text(
        "# of this service\nNNI_TOKEN=the token=1\n\nNNI_NATS_PASSWORD=the password\n"
    )
    key = folder / "tls.key"
    key.write_text("the key")
    for path in (secrets, key):
        path.chmod(0o400)
    entry = [sys.executable, "-P", "-m", "svc_common.entry_point", *options]
    done = subprocess.run(
        [*entry, python, "-c", SERVICE, str(secrets), str(key)],
        env={
            "PYTHONPATH": str(packages),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": os.environ["PATH"],
            "NNI_SECRETS_FILE": str(secrets),
            "NNI_TLS_KEY_FILE": str(key),
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_service_gets_its_secrets_and_no_environment_has_them(
    tmp_path: Path, packages: Path
) -> None:
    found = run(tmp_path, packages, NNI_S3_SECRET_KEY="hush")

    assert found["token"] == "the token=1"
    assert found["key"] == ["the key", "the key"]
    for place in ("environment", "arguments", "spy"):
        text = json.dumps(found[place] if place != "spy" else found["spy"]["environment"])
        for secret in ("the token", "the password", "the key", "hush"):
            assert secret not in text
    assert "NNI_SECRETS_FILE" not in found["spy"]["environment"]


def test_user_code_inherits_no_descriptor_of_a_secret(tmp_path: Path, packages: Path) -> None:
    found = run(tmp_path, packages)

    assert not [name for name in found["spy"]["own"] if "memfd" in name]


@pytest.mark.skipif(
    os.geteuid() != 0 or not PUBLIC_PYTHON.exists(), reason="only root can become another user"
)
def test_user_code_of_the_same_user_can_read_no_secret(tmp_path: Path, packages: Path) -> None:
    found = run(tmp_path, packages, "--user", f"{OTHER}:{OTHER}", python=str(PUBLIC_PYTHON))

    assert found["ids"] == [OTHER, OTHER, []]
    assert found["token"] == "the token=1"
    assert found["key"] == ["the key", "the key"]
    assert set(found["spy"]["found"].values()) == {"PermissionError"}
    assert len(found["spy"]["found"]) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [((), "must name a program"), (("--user", "daemon", "true"), "UID or UID:GID")],
)
def test_wrong_arguments_are_named(options: tuple[str, ...], message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "svc_common.entry_point", *options],
        env={"PATH": os.environ["PATH"], "NNI_TOKEN": "token"},
        capture_output=True,
        text=True,
        check=False,
    )

    if os.geteuid() == 0 or not options:
        assert done.returncode == 1
        assert message in done.stderr
