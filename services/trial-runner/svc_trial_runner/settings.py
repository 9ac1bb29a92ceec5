"""Settings of the agent, read from the environment and the command line."""

import argparse
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from nni_wire.pools import LOCAL_POOL
from svc_common import environment
from svc_common.access.security import ON_LOOPBACK, SecuritySettings, read_security_settings
from svc_common.code_user import SAME_USER, CodeUser, read_code_user
from svc_common.errors import InvalidArgumentError
from svc_common.storage.s3_settings import S3Settings, read_s3_settings
from svc_common.subjects import check_id
from svc_trial_runner.agent_file import connection_settings, read_agent_file
from svc_trial_runner.agent_settings import GRACE_S, LEAST_GRACE_S, AgentSettings

NNI_RUNNER_ID: Final = "NNI_RUNNER_ID"
NNI_RUNNER_POOL: Final = "NNI_RUNNER_POOL"
NNI_RUNNER_SLOTS: Final = "NNI_RUNNER_SLOTS"
NNI_RUNNER_OUTPUT_LIMIT: Final = "NNI_RUNNER_OUTPUT_LIMIT_BYTES"
NNI_RUNNER_FAKE_GPUS: Final = "NNI_RUNNER_FAKE_GPUS"
NNI_RUNNER_GRPC: Final = "NNI_RUNNER_GRPC"
NNI_RUNNER_LIVE_OUTPUT: Final = "NNI_RUNNER_LIVE_OUTPUT"
NNI_RUNNER_MANAGER_GRPC: Final = "NNI_RUNNER_MANAGER_GRPC"
NNI_RUNNER_GRACE: Final = "NNI_RUNNER_GRACE_S"
NNI_RUNNER_REUSE_IDLE: Final = "NNI_RUNNER_REUSE_IDLE_S"
NNI_WARM: Final = "NNI_WARM"

AUTOMATIC: Final = "auto"
"""Value of `NNI_RUNNER_SLOTS` for a limit by cores; the default if the bus is another machine."""
SLOTS_PER_CORE: Final = 4
"""Trials wait for data, too; with more of them per core the agent itself falls behind."""
_LOOPBACK: Final = {"127.0.0.1", "localhost", "::1"}
_OUTPUT_LIMIT_BYTES: Final = 128 * 1024 * 1024
"""Some 1.5 million lines: a trial that prints more does so by mistake, and many fill a disk."""

_REUSE_IDLE_S: Final = 10.0
"""Longer than an algorithm takes for its next proposal, and short enough to hold the memory."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one agent process: bus, pool, slots, folders, GPUs, limits."""

    nats_url: str
    """Address of the bus."""
    token: str = field(repr=False)
    """Secret of the installation."""
    home: Path
    """Folder of the installation's state; the agent uses `runner/` in it."""
    replicas: int = 1
    """Number of copies that a clustered bus keeps of each stream."""
    pool: str = LOCAL_POOL
    """Pool whose tasks are pulled."""
    slots: int | None = None
    """Concurrent trials; None: no limit (the experiment's concurrency and GPUs bound it)."""
    max_trials: int | None = None
    """Number of trials after which the agent ends by itself; None: no limit."""
    output_limit_bytes: int = _OUTPUT_LIMIT_BYTES
    """Limit of stdout and of stderr of a trial, each, where the experiment sets none."""
    live_output: bool = False
    """True if the output of running trials is published on the bus; else the files are read
    directly, which requires the manager to be on this machine."""
    warm: bool = True
    """True if warm interpreters may be used."""
    reuse_idle_s: float = _REUSE_IDLE_S
    """Time for which a process that has ended its trial is kept for another one, in seconds."""
    grace_s: float = GRACE_S
    """Time from TERM to the end of the agent: its trials end, and their last checkpoints are
    stored."""
    fake_gpus: int | None = None
    """Number of simulated GPUs, for tests; None: the driver's."""
    runtime_directory: Path | None = None
    """Parent folder of the trial socket; None: the temporary folder."""
    s3: S3Settings | None = None
    """S3 endpoint of the blob store; None: a folder below `home`."""
    manager_grpc: str = ""
    """`host:port` of the manager as proxy of the blob store, so that no key to the store is needed
    here; empty: the store is used directly."""
    grpc_host: str = "127.0.0.1"
    """Host to listen on; calls need the token."""
    grpc_port: int = 0
    """0 = a free port, published in the agent's presence."""
    host_name: str = ""
    version: str = ""
    runner_id: str = ""
    """Id of the agent, e.g. where its bus user is restricted to it; empty: an id is drawn at the
    first start."""
    security: SecuritySettings = ON_LOOPBACK
    """Transport security and access rules."""
    code_user: CodeUser = SAME_USER
    """Account of trials."""
    bus_is_here: bool = False
    """True if the bus runs on this machine, so that no other agent can have this one's tasks."""
    fleet: AgentSettings | None = None
    """Settings by which a fleet has started this agent; None: it belongs to the installation of
    this machine."""

    @property
    def work_directory(self) -> Path:
        """Folder of code, tools and trials: that of the agent, or one that trials may enter."""
        return self.runner_directory if self.code_user.uid is None else self.home / "work"

    @property
    def runner_directory(self) -> Path:
        """Folder of the agent's own state."""
        return self.home / "runner"


def read_settings(arguments: Sequence[str]) -> Settings:
    """Read the settings: environment and command line, or a fleet's file, which is removed.

    Raises:
        InvalidArgumentError: a value is missing or breaks a rule.
    """
    parser = argparse.ArgumentParser(prog="python -m svc_trial_runner", description=__doc__)
    parser.add_argument("--pool", default=environment.text(NNI_RUNNER_POOL, LOCAL_POOL))
    parser.add_argument("--max-trials", type=int, default=None, help="end after so many trials")
    parser.add_argument(
        "--settings", metavar="FILE", help="settings of a fleet, instead of all others; removed"
    )
    options = parser.parse_args(arguments)
    if options.settings is not None:
        return settings_of_fleet(read_agent_file(options.settings))
    if options.max_trials is not None and options.max_trials < 1:
        raise InvalidArgumentError("--max-trials", "must be >= 1", options.max_trials)
    nats_url = environment.text(environment.NNI_NATS_URL)
    bus_is_here = urlsplit(nats_url).hostname in _LOOPBACK
    grpc_host, grpc_port = environment.address(NNI_RUNNER_GRPC, "127.0.0.1:0")
    return Settings(
        nats_url=nats_url,
        token=environment.text(environment.NNI_TOKEN),
        home=environment.home(),
        replicas=environment.integer(environment.NNI_BUS_REPLICAS, 1),
        pool=options.pool,
        slots=_slots(bus_is_here=bus_is_here),
        max_trials=options.max_trials,
        output_limit_bytes=environment.integer(NNI_RUNNER_OUTPUT_LIMIT, _OUTPUT_LIMIT_BYTES),
        live_output=environment.flag(NNI_RUNNER_LIVE_OUTPUT, default=not bus_is_here),
        warm=environment.flag(NNI_WARM, default=True),
        reuse_idle_s=_reuse_idle_s(),
        grace_s=_grace_s(),
        fake_gpus=_fake_gpus(),
        runtime_directory=_runtime_directory(),
        s3=read_s3_settings(),
        manager_grpc=_manager_grpc(),
        grpc_host=grpc_host,
        grpc_port=grpc_port,
        host_name=platform.node() or "localhost",
        version=environment.text(environment.NNI_VERSION, "unknown"),
        runner_id=_runner_id(),
        security=read_security_settings(),
        code_user=read_code_user(),
        bus_is_here=bus_is_here,
    )


def settings_of_fleet(fleet: AgentSettings) -> Settings:
    """Build the settings of an agent that a fleet has started; raise if a value breaks a rule.

    Only what concerns this machine is read from the environment. The agent listens nowhere.

    Raises:
        InvalidArgumentError: a name, an address or the home cannot be used.
    """
    try:
        home = Path(fleet.home).expanduser()
    except RuntimeError as error:
        raise InvalidArgumentError("home", f"must be a folder ({error})", fleet.home) from error
    reached = connection_settings(fleet, home)
    return Settings(
        nats_url=reached.nats_url,
        token=fleet.manager_token,
        home=home,
        pool=check_id("pool", fleet.pool),
        slots=fleet.slots,
        max_trials=fleet.max_trials,
        output_limit_bytes=environment.integer(NNI_RUNNER_OUTPUT_LIMIT, _OUTPUT_LIMIT_BYTES),
        live_output=not fleet.bus_is_here,
        warm=environment.flag(NNI_WARM, default=True),
        reuse_idle_s=_reuse_idle_s(),
        grace_s=fleet.grace_s,
        fake_gpus=_fake_gpus(),
        # That of a login is removed with its last session, which agents outlive.
        runtime_directory=None,
        manager_grpc=reached.manager,
        host_name=platform.node() or "localhost",
        version=fleet.version,
        runner_id=check_id("name", fleet.name),
        security=reached.security,
        bus_is_here=fleet.bus_is_here,
        fleet=fleet,
    )


def _fake_gpus() -> int | None:
    count = environment.integer(NNI_RUNNER_FAKE_GPUS, -1)
    return count if count >= 0 else None


def _runtime_directory() -> Path | None:
    folder = environment.text("XDG_RUNTIME_DIR", "")
    return Path(folder) if folder and os.access(folder, os.W_OK) else None


def _reuse_idle_s() -> float:
    seconds = environment.number(NNI_RUNNER_REUSE_IDLE, _REUSE_IDLE_S)
    if not 0 <= seconds < math.inf:
        raise InvalidArgumentError(NNI_RUNNER_REUSE_IDLE, "must be >= 0", seconds)
    return seconds


def _grace_s() -> float:
    seconds = environment.number(NNI_RUNNER_GRACE, GRACE_S)
    if not LEAST_GRACE_S <= seconds < math.inf:
        raise InvalidArgumentError(NNI_RUNNER_GRACE, f"must be >= {LEAST_GRACE_S:g}", seconds)
    return seconds


def _slots(*, bus_is_here: bool) -> int | None:
    text = environment.text(NNI_RUNNER_SLOTS, "")
    if not text and bus_is_here:
        return None  # the owner of the machine chooses the concurrency of the experiments
    if text in {"", AUTOMATIC}:
        return default_slots(usable_cores())
    slots = environment.integer(NNI_RUNNER_SLOTS)
    if slots < 0:
        raise InvalidArgumentError(NNI_RUNNER_SLOTS, f"must be {AUTOMATIC} or >= 0", slots)
    return slots or None


def default_slots(cores: float) -> int:
    """Return the limit of concurrent trials for a number of cores, which may be a fraction."""
    return max(1, math.ceil(cores * SLOTS_PER_CORE))


def usable_cores(groups: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the number of cores that this process may use: by affinity and by its container.

    Args:
        groups: root of the control groups as a container sees them.
    """
    cores = float(len(os.sched_getaffinity(0)))
    try:
        quota, period = (groups / "cpu.max").read_text(encoding="ascii").split()
        return min(cores, int(quota) / int(period))
    except (OSError, ValueError):  # no limit, or another kind of system
        return cores


def _runner_id() -> str:
    text = environment.text(NNI_RUNNER_ID, "")
    return check_id(NNI_RUNNER_ID, text) if text else ""


def _manager_grpc() -> str:
    if not environment.text(NNI_RUNNER_MANAGER_GRPC, ""):
        return ""
    host, port = environment.address(NNI_RUNNER_MANAGER_GRPC)
    return f"{host}:{port}"
