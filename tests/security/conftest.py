"""Deployment that other machines can reach: TLS everywhere, users of the bus, tokens."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nni_wire.access import AccessEntry, dump_entries, fingerprint
from svc_common.bus_users import write_users
from svc_common.messaging.limits import SERVER_PAYLOAD_LIMIT_BYTES
from tests.support import wait
from tests.support.certificates import Authority
from tests.support.process_deployment import Addresses, Deployment, Part, deployed
from tests.support.servers import require_binary

ADMIN_TOKEN = "installation-canary-5b1fd0c2e7"
TOKENS = {
    "vera": ("viewer", "nni_viewer-canary-93ab0cd417"),
    "uma": ("user", "nni_user-canary-7d20e51bb8"),
}
TRIAL = """\
import os
import nni
x = nni.get_next_parameter()["x"]
with open(os.path.join(os.environ["NNI_OUTPUT_DIR"], "environment"), "w") as file:
    file.write(repr(dict(os.environ)))
print("the trial says", x, flush=True)
os.symlink("/proc/self/environ", os.path.join(os.environ["NNI_OUTPUT_DIR"], "link.txt"))
os.remove(os.path.join(os.environ["NNI_OUTPUT_DIR"], "stderr"))
os.symlink("/proc/self/environ", os.path.join(os.environ["NNI_OUTPUT_DIR"], "stderr"))
nni.report_final_result(x)
"""


@dataclass
class Fortress:
    """Deployment on 0.0.0.0 and its clients."""

    folder: Path
    authority: Authority
    addresses: Addresses
    deployment: Deployment
    passwords: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.addresses.port('manager:8080')}"

    @property
    def grpc(self) -> str:
        return f"localhost:{self.addresses.port('manager:7501')}"

    @property
    def secrets(self) -> list[str]:
        """Secrets that may appear in no log, event or page."""
        return [ADMIN_TOKEN, *(token for _, token in TOKENS.values()), *self.passwords]

    def nnictl(
        self, *words: str | Path, token: str = ADMIN_TOKEN, **more: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run `nnictl` like a user on another machine, with only an address and a token."""
        variables = {
            "HOME": str(self.folder / "client"),
            "NNI_HOME": str(self.folder / "client" / "nni"),
            "NNI_ENDPOINT": self.url,
            "NNI_TOKEN": token,
            "NNI_CA_FILE": str(self.authority.ca),
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
            **more,
        }
        return subprocess.run(
            [sys.executable, "-P", "-m", "nni.cli.main", *words],
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )

    def audit(self) -> list[dict[str, str]]:
        """Return the lines of the audit trail."""
        text = (self.folder / "nni" / "log" / "audit.log").read_text()
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="session")
def fortress(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fortress]:
    require_binary("nats-server")
    folder = tmp_path_factory.mktemp("fortress")
    (folder / "client").mkdir()
    authority = Authority(folder / "certificates")
    addresses = Addresses(
        [
            *("bus:4222", "dispatcher:7502", "compressor:7504", "nas:7505"),
            *("manager:7501", "manager:8080"),
        ]
    )
    write_users(folder / "bus", ["local"], {})
    own = authority.sign("service", "localhost", "127.0.0.1")
    access = folder / "access.json"
    access.write_text(
        dump_entries(
            AccessEntry(name, role, fingerprint(token)) for name, (role, token) in TOKENS.items()
        )
    )
    access.chmod(0o600)
    common = {
        "NNI_HOME": str(folder / "nni"),
        "NNI_NATS_URL": f"tls://localhost:{addresses.port('bus:4222')}",
        "NNI_TOKEN": ADMIN_TOKEN,
        "NNI_TLS_CERT_FILE": str(own.certificate),
        "NNI_TLS_KEY_FILE": str(own.key),
        "NNI_TLS_CA_FILE": str(authority.ca),
        "NNI_ACCESS_FILE": str(access),
        # No blob store of its own: users share the machine, and keep experiments in their homes.
        "NNI_EXPERIMENT_ROOTS": str(folder / "client" / "nni-experiments"),
        "NNI_DISPATCHER_GRPC": "0.0.0.0:7502",
        "NNI_COMPRESSOR_GRPC": "0.0.0.0:7504",
        "NNI_NAS_GRPC": "0.0.0.0:7505",
    }
    for name in ("dispatcher:7502", "compressor:7504", "nas:7505"):
        port = name.rpartition(":")[2]
        addresses.put(f"0.0.0.0:{port}", f"0.0.0.0:{addresses.port(name)}")
    parts = [
        Part("nats", ["nats-server", "-c", str(_bus_config(folder, authority, addresses))], {}),
        Part("dispatcher", _module("svc_dispatcher"), {**common, **_login(folder, "dispatcher")}),
        Part("compressor", _module("svc_compressor"), {**common, **_login(folder, "compressor")}),
        Part("nas", _module("svc_nas"), {**common, **_login(folder, "nas")}),
        Part(
            "manager",
            _module("svc_manager"),
            {
                **common,
                **_login(folder, "manager"),
                "NNI_DISPATCHER_GRPC": f"localhost:{addresses.port('dispatcher:7502')}",
                "NNI_COMPRESSOR_GRPC": f"localhost:{addresses.port('compressor:7504')}",
                "NNI_NAS_GRPC": f"localhost:{addresses.port('nas:7505')}",
                "NNI_MANAGER_GRPC": f"0.0.0.0:{addresses.port('manager:7501')}",
                "NNI_MANAGER_HTTP": f"0.0.0.0:{addresses.port('manager:8080')}",
            },
            [
                *("python", "-P", "-m", "svc_common.health"),
                f"127.0.0.1:{addresses.port('manager:7501')}",
            ],
        ),
        Part(
            "trial-runner", _module("svc_trial_runner"), {**common, **_login(folder, "pool-local")}
        ),
    ]
    with deployed(folder, addresses, parts) as deployment:
        made = Fortress(folder, authority, addresses, deployment)
        made.passwords = [
            _login(folder, user)["NNI_NATS_PASSWORD"]
            for user in ("manager", "dispatcher", "compressor", "nas", "pool-local")
        ]
        yield made


@pytest.fixture(scope="session")
def experiment(fortress: Fortress) -> str:
    """Finished experiment of a user on another machine."""
    code = fortress.folder / "client" / "code"
    code.mkdir()
    (code / "trial.py").write_text(TRIAL)
    (code / "config.yml").write_text(
        "searchSpace: {x: {_type: uniform, _value: [0, 1]}}\n"
        "trialCommand: python3 trial.py\n"
        "trialConcurrency: 2\n"
        "maxTrialNumber: 4\n"
        "tuner: {name: Random, classArgs: {seed: 1}}\n"
        "trainingService: {platform: local}\n"
    )
    port = str(Addresses(["page"]).port("page"))
    done = fortress.nnictl(
        *("create", "--config", code / "config.yml", "--port", port), token=TOKENS["uma"][1]
    )
    found = re.search(r"The experiment id is (\w+)", done.stdout)
    assert found is not None, done.stdout + done.stderr

    def ended() -> bool:
        said = fortress.nnictl("experiment", "status", found[1]).stdout
        return '"DONE"' in said

    wait.until(ended, 150, "the end of the experiment")
    return found[1]


def _module(name: str) -> list[str]:
    return ["python", "-P", "-m", name]


def _login(folder: Path, user: str) -> Mapping[str, str]:
    lines = (folder / "bus" / f"{user}.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def _bus_config(folder: Path, authority: Authority, addresses: Addresses) -> Path:
    path = folder / "bus" / "nats.conf"
    path.write_text(
        f'listen: "0.0.0.0:{addresses.port("bus:4222")}"\n'
        f"max_payload: {SERVER_PAYLOAD_LIMIT_BYTES}\n"
        f"jetstream {{ store_dir: {json.dumps(str(folder / 'bus' / 'store'))} }}\n"
        f"include users.conf\n{authority.nats_tls()}"
    )
    return path
