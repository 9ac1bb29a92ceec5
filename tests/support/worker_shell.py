"""Commands of a worker's program on this machine, and a bundle with a stand-in for the agent."""

import hashlib
import io
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import nni_wire
import svc_trial_runner
from svc_trial_runner.fleet.adapters.bundles import bundle_main
from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult, WorkerCommand
from svc_trial_runner.fleet.adapters.bundles.worker_folders import LOG, WorkerFolders
from svc_trial_runner.fleet.adapters.bundles.worker_processes import wait_until

DIGEST: Final = "0" * 64
TIMEOUT_S: Final = 30.0

_AGENT: Final = """
import json, os, signal, subprocess, sys, time
wish = json.load(sys.stdin)
if wish.get("deaf"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if wish.get("trial"):
    sleep = "import time; print(flush=True); time.sleep(600)"
    trial = subprocess.Popen([sys.executable, "-c", sleep], stdout=subprocess.PIPE,
                             start_new_session=True)
    trial.stdout.readline()  # /proc shows its environment by now
    print("trial", trial.pid, flush=True)
print(wish.get("say", "ready"), flush=True)
if "exit" in wish:
    sys.exit(wish["exit"])
time.sleep(600)
"""


def run_command(command: WorkerCommand, shell: Sequence[str] = ("sh", "-c")) -> CommandResult:
    """Run a command line as an SSH server does, with all of its stdin."""
    done = subprocess.run(
        [*shell, command.line],
        input=b"".join(command.chunks()),
        capture_output=True,
        check=False,
        timeout=TIMEOUT_S * 2,
    )
    return CommandResult(done.stdout, done.stderr, done.returncode)


def stand_in_bundle(base: Path, digest: str = DIGEST) -> str:
    """Make an unpacked bundle whose agent does what its settings say; return its hash.

    Settings: `say`, a line of output; `exit`, a code, else it sleeps; `deaf`, it ignores TERM;
    `trial`, it starts a process in a session of its own and prints its number.
    """
    folder = WorkerFolders(str(base)).bundle(digest)
    site = folder / "site"
    site.mkdir(parents=True)
    for package in (svc_trial_runner, nni_wire, sys.modules["svc_common"]):
        (site / package.__name__).symlink_to(Path(str(package.__file__)).parent)
    (folder / "agent.py").write_text(_AGENT)
    agent = 'if sys.argv[1] == "agent":\n    exec(open(__file__[:-6] + "agent.py").read())\nelse:\n'
    main = Path(bundle_main.__file__).read_text()
    (folder / "run.py").write_text(
        main.replace(
            'if __name__ == "__main__":\n', 'if __name__ == "__main__":\n    pass\n'
        ).replace("    pass\n    main()", f"    pass\n{agent}    main()")
    )
    return digest


def wait_for_output(folders: WorkerFolders, name: str, text: str) -> str:
    """Wait until an agent has written a text; return all that it has written."""
    log = folders.agent(name) / LOG

    assert wait_until(lambda: log.exists() and text in log.read_text(), TIMEOUT_S), log.read_text()
    return log.read_text()


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a compressed tar of files."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return target.getvalue()


def digest_of(content: bytes) -> str:
    """Return the hash by which a bundle is known."""
    return hashlib.sha256(content).hexdigest()


def write_distribution(
    site: Path, name: str, requires: Sequence[str] = (), tag: str = "py3-none-any"
) -> Path:
    """Write an installed distribution of version 1.0 with one module; return that."""
    module = name.replace("-", "_")
    facts = site / f"{module}-1.0.dist-info"
    facts.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
    lines += [f"Requires-Dist: {text}" for text in requires]
    (facts / "METADATA").write_text("\n".join(lines) + "\n")
    (facts / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {tag}\n")
    files = [f"{module}.py", f"{facts.name}/METADATA", f"{facts.name}/WHEEL"]
    (facts / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    path = site / f"{module}.py"
    path.write_text(f"NAME = {name!r}\n")
    return path
