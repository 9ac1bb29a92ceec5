"""A real Slurm of one node on free ports of this machine: munged, slurmctld and slurmd.

It needs root and Debian's packages `slurmctld`, `slurmd`, `slurm-client` and `munge`; without them
a test is skipped, or fails if `NNI_REQUIRE_PLATFORMS=1`. All files lie in one folder, also those
of jobs that this machine's own Slurm would keep elsewhere; processes end with the context.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from tests.support import wait
from tests.support.ports import free_port
from tests.support.required_platforms import leave_to_platform_tests, require_platform

PROGRAMS: Final = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
FOLDERS: Final = os.pathsep.join(("/usr/local/sbin", "/usr/sbin", "/sbin", os.defpath))
"""Where the daemons of Debian are, which the PATH of a user need not hold."""
START_S: Final = 60.0
STOP_S: Final = 30.0
NODE: Final = "node1"
CPUS: Final = 8
MEMORY_MEBIBYTES: Final = 500
LONG: Final = "long"
SHORT: Final = "short"
DOWN: Final = "down"
"""Partitions: the default one, one with a limit of a minute, one that takes no jobs."""


def _programs() -> dict[str, str]:
    """Return the paths of Slurm's programs; skip the test without them."""
    leave_to_platform_tests()
    path = os.pathsep.join((os.environ.get("PATH", ""), FOLDERS))
    found = {name: shutil.which(name, path=path) for name in PROGRAMS}
    missing = [name for name, place in found.items() if place is None]
    if missing:
        require_platform(f"Slurm is not installed: no {', '.join(missing)}")
    if os.geteuid() != 0:
        require_platform("a Slurm cluster is started by root only")
    return {name: place for name, place in found.items() if place is not None}


class SlurmCluster:
    """Daemons of one cluster with one node.

    Attributes:
        folder: of all its files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._programs = _programs()
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._controller_port = free_port()
        self._node_port = free_port()

    @property
    def configuration(self) -> Path:
        """Slurm's configuration, for `SLURM_CONF`."""
        return self.folder / "slurm.conf"

    def start(self) -> None:
        """Start all daemons; return when the node takes jobs."""
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        self.configuration.write_text(self._text())
        (self.folder / "gres.conf").write_text("Name=gpu File=/dev/null,/dev/zero\n")
        self.start_munge()
        self.start_controller()
        self._start("slurmd", "-D", "-N", NODE, "-f", str(self.configuration))
        wait.until(self._is_idle, START_S, self._logs())

    def start_munge(self) -> None:
        """Start the daemon of authentication."""
        options = {
            "key-file": "munge.key",
            "socket": "munge.sock",
            "pid-file": "munge.pid",
            "log-file": "munge.log",
            "seed-file": "munge.seed",
        }
        words = [f"--{name}={self.folder / file}" for name, file in options.items()]
        self._start("munged", "--foreground", "--force", *words)
        wait.until((self.folder / "munge.sock").exists, START_S, self._logs())

    def start_controller(self) -> None:
        """Start the controller; return when it answers."""
        self._start("slurmctld", "-D", "-f", str(self.configuration))
        wait.until(lambda: self.call("scontrol", "ping").returncode == 0, START_S, self._logs())

    def stop_daemon(self, name: str) -> None:
        """End one daemon, as for maintenance."""
        daemon = self._daemons.pop(name)
        daemon.terminate()
        try:
            daemon.wait(STOP_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def stop(self) -> None:
        """End all jobs and daemons."""
        if {"munged", "slurmctld", "slurmd"} <= self._daemons.keys():
            self.call("scancel", "--me")
            with contextlib.suppress(TimeoutError):
                wait.until(lambda: not self.output("squeue", "-h").strip(), STOP_S)
        steps = self._processes_of_jobs()
        for name in ("slurmd", "slurmctld", "munged"):
            if name in self._daemons:
                self.stop_daemon(name)
        for step in steps:
            with contextlib.suppress(psutil.NoSuchProcess):
                step.kill()

    def call(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's commands."""
        return subprocess.run(
            [self._programs[program], *words],
            env={**os.environ, "SLURM_CONF": str(self.configuration)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=START_S,
        )

    def output(self, program: str, *words: str) -> str:
        """Return what one of Slurm's commands prints."""
        done = self.call(program, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _processes_of_jobs(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("SLURM_CONF") == str(self.configuration):
                    found.append(process)
        return found

    def _is_idle(self) -> bool:
        words = self.call("scontrol", "show", "node", "--oneliner", NODE).stdout.split()
        return "State=IDLE" in words

    def _start(self, name: str, *words: str) -> None:
        log = self.folder / f"{name}.out"
        with log.open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                [self._programs[name], *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
            )

    def _logs(self) -> str:
        return f"see the files in {self.folder}"

    def _text(self) -> str:
        folder, host = self.folder, socket.gethostname()
        lines: Sequence[str] = (
            "ClusterName=nnitest",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={self._controller_port}",
            f"SlurmdPort={self._node_port}",
            "SlurmUser=root",
            "SlurmdUser=root",
            "AuthType=auth/munge",
            f"AuthInfo=socket={folder}/munge.sock",
            f"StateSaveLocation={folder}/state",
            f"SlurmdSpoolDir={folder}/spool",
            f"SlurmctldPidFile={folder}/slurmctld.pid",
            f"SlurmdPidFile={folder}/slurmd.pid",
            f"SlurmctldLogFile={folder}/slurmctld.log",
            f"SlurmdLogFile={folder}/slurmd.log",
            # Neither cgroups nor accounting: a container has none.
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU",
            "SlurmdParameters=config_overrides",
            "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1",
            "ReturnToService=2",
            "MpiDefault=none",
            "KillWait=2",
            "MinJobAge=600",
            "MailProg=/bin/true",
            "GresTypes=gpu",
            (
                f"NodeName={NODE} NodeHostname={host} NodeAddr=127.0.0.1 CPUs={CPUS}"
                f" RealMemory={MEMORY_MEBIBYTES} Gres=gpu:2 State=UNKNOWN"
            ),
            f"PartitionName={LONG} Nodes={NODE} Default=YES MaxTime=60 DefaultTime=10 State=UP",
            f"PartitionName={SHORT} Nodes={NODE} MaxTime=1 State=UP",
            f"PartitionName={DOWN} Nodes={NODE} MaxTime=60 State=DOWN",
        )
        return "\n".join(lines) + "\n"


@contextmanager
def slurm_cluster() -> Iterator[SlurmCluster]:
    """Start a cluster in a folder of its own; end and remove all of it at the end."""
    # A short path: that of a socket has at most 108 bytes.
    with tempfile.TemporaryDirectory(prefix="nni-slurm-", ignore_cleanup_errors=True) as folder:
        cluster = SlurmCluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
