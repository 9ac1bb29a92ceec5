"""The configuration of the bus for servers is one that the server takes."""

import os
import shutil
import subprocess
from pathlib import Path

from svc_common.messaging.limits import SERVER_PAYLOAD_LIMIT_BYTES
from tests.support.certificates import Authority
from tests.support.servers import require_binary

CONFIG = Path(__file__).parents[3] / "deploy" / "nats" / "nats.conf"


def test_server_accepts_the_configuration(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = authority.sign("nats", "127.0.0.1")
    variables = {
        "NNI_TLS_CERT_FILE": str(server.certificate),
        "NNI_TLS_KEY_FILE": str(server.key),
        "NNI_TLS_CA_FILE": str(authority.ca),
        "NNI_NATS_PORT": "4222",
        "NNI_NATS_NAME": "n1",
        "NNI_NATS_STORE": str(tmp_path),
    }
    folder = tmp_path / "nats"
    shutil.copytree(CONFIG.parent, folder)
    (folder / "passwords.conf").write_text(
        "".join(
            f'NNI_NATS_{user}_PASSWORD: "secret"\n'
            for user in ("MANAGER", "DISPATCHER", "COMPRESSOR", "NAS", "FLEET", "POOL")
        )
    )

    (folder / "agents").mkdir()
    (folder / "agents" / "agents.conf").touch()

    done = subprocess.run(
        [require_binary("nats-server"), "-t", "-c", str(folder / CONFIG.name)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_payload_limit_is_that_of_the_services() -> None:
    assert f"max_payload: {SERVER_PAYLOAD_LIMIT_BYTES}\n" in CONFIG.read_text()
