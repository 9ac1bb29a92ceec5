"""Machines for the platform `remote`: SSH servers on this one, each with a home of its own."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

import nni_wire
import svc_trial_runner
from nni_wire import tar_reader
from svc_common.errors import InvalidArgumentError
from svc_trial_runner.agent_settings import AgentSettings, parse_agent_settings
from svc_trial_runner.fleet.adapters.bundles import bundle_main
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.remote.adapter import RemoteAdapter
from svc_trial_runner.fleet.domain.agents import AgentName, PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext, InstallationEndpoints
from svc_trial_runner.fleet.testing import INSTALLATION, POOL
from tests.support.ports import free_port
from tests.support.ssh_server import ServerOptions, SshServer, make_key
from tests.support.wait import until
from tests.support.worker_shell import packed

USER: Final = "ann"
PASSWORD: Final = "pass word"
_START_TIMEOUT_S: Final = 20.0

_AGENT: Final = """
import json, signal, sys, time
from pathlib import Path
settings = sys.stdin.read()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
(Path(json.loads(settings)["home"]).parent / "received.json").write_text(settings)
while True:
    time.sleep(600)
"""


class StandInBundles:
    """Store with one bundle, whose agent sleeps until it is ended."""

    def __init__(self, folder: Path) -> None:
        content = packed(_bundle_files())
        self.path = folder / f"bundle-{hashlib.sha256(content).hexdigest()}.tar.gz"
        self.path.write_bytes(content)
        self.asked: list[tuple[tuple[int, int], str]] = []

    async def bundle(self, python: tuple[int, int], platform_tag: str) -> Path:
        """Return the bundle."""
        self.asked.append((python, platform_tag))
        return self.path


def _bundle_files() -> Mapping[str, bytes]:
    root = Path(str(svc_trial_runner.__file__)).parent
    bundles = root / "fleet/adapters/bundles"
    modules = [
        *(root / name for name in ("__init__.py", "fleet/__init__.py")),
        *(root / "fleet/adapters/__init__.py", bundles / "__init__.py"),
        *sorted(bundles.glob("worker*.py")),
    ]
    files = {f"site/svc_trial_runner/{path.relative_to(root)}": path for path in modules}
    files["site/nni_wire/__init__.py"] = Path(str(nni_wire.__file__))
    files["site/nni_wire/tar_reader.py"] = Path(tar_reader.__file__)
    contents = {name: path.read_bytes() for name, path in files.items()}
    main = Path(bundle_main.__file__).read_text()
    agent = 'if sys.argv[1] == "agent":\n    exec(open(__file__[:-6] + "agent.py").read())\n'
    guard = 'if __name__ == "__main__":\n'
    contents["run.py"] = main.replace(guard, agent + guard).encode()
    contents["agent.py"] = _AGENT.encode()
    return contents


def _parsed(file: Path) -> AgentSettings | None:
    try:
        return parse_agent_settings(file.read_bytes())
    except (FileNotFoundError, InvalidArgumentError):
        return None


class Machines:
    """Machines with an SSH server of asyncssh each.

    Args:
        folder: empty folder of the test.
        count: of machines.
    """

    def __init__(self, folder: Path, count: int = 1) -> None:
        self.folder = folder
        self.known_hosts = folder / "accepted_hosts"
        self.bundles = StandInBundles(folder)
        self.host_key = make_key(folder / "host_key")
        self.key_file = make_key(folder / "client_key")
        self.homes = [folder / f"home{index}" for index in range(count)]
        for home in self.homes:
            home.mkdir()
        self.servers = [SshServer(self.options(home)) for home in self.homes]

    def options(self, home: Path) -> ServerOptions:
        """Return the options of a server that takes the password and the key."""
        return ServerOptions(
            home=str(home),
            host_key=self.host_key,
            passwords={USER: PASSWORD},
            authorized_keys=f"{self.key_file}.pub",
            port=free_port(),  # stays free for a restart
        )

    def start(self) -> None:
        """Start all servers and write down their host keys."""
        for server in self.servers:
            server.start()
            self.trust(server.port)

    def trust(self, port: int) -> None:
        """Append the host key of a server to the file of accepted ones."""
        public = Path(f"{self.host_key}.pub").read_text("ascii").strip()
        with self.known_hosts.open("a") as file:
            file.write(f"[127.0.0.1]:{port} {public}\n")

    def entry(self, index: int = 0, **fields: object) -> dict[str, object]:
        """Return an entry of `machineList` that logs in by the password."""
        usual = {"host": "127.0.0.1", "port": self.servers[index].port, "user": USER}
        return {**usual, "password": PASSWORD, **fields}

    def adapter(
        self,
        *entries: Mapping[str, object],
        pool: str = POOL,
        installation: str = INSTALLATION,
        options: Mapping[str, object] | None = None,
        endpoints: InstallationEndpoints | None = None,
    ) -> RemoteAdapter:
        """Return an adapter for entries of `machineList`; none: all machines."""
        machine_list = entries or [self.entry(index) for index in range(len(self.servers))]
        section = PlatformSection(
            "remote", {"machineList": [dict(one) for one in machine_list], **(options or {})}
        )
        context = AdapterContext(
            installation=installation,
            pool=pool,
            section=section,
            endpoints=endpoints or InstallationEndpoints("nats://127.0.0.1:9", "127.0.0.1:9"),
            bundles=self.bundles,
            folder=self.folder / installation / pool,
            front=NoFront(),
        )
        return RemoteAdapter(context, self.known_hosts, config_files=[])

    def agent_folder(self, name: AgentName) -> Path:
        """Return the folder of an agent, on whichever machine it is."""
        places = [home / ".nni/agents" / str(name) for home in self.homes]
        return next(place for place in places if place.exists())

    def settings(self, name: AgentName) -> AgentSettings:
        """Return what the stand-in of an agent got on stdin, once it has it."""
        file = self.agent_folder(name) / "received.json"
        found = until(lambda: _parsed(file), _START_TIMEOUT_S, f"settings of {name}")
        assert found is not None
        return found

    def kill_agent(self, name: AgentName) -> None:
        """Kill the stand-in of an agent as a crash does, but not the process above it."""
        supervisor = json.loads((self.agent_folder(name) / "process.json").read_text())["pid"]
        for process in psutil.Process(supervisor).children():
            process.kill()

    def close(self) -> None:
        """Kill the servers, and all processes that were started on the machines."""
        for server in self.servers:
            server.kill()
        for process in psutil.process_iter(["cmdline"]):
            if any(str(self.folder) in word for word in process.info["cmdline"] or ()):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
