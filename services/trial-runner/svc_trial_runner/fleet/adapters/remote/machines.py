"""Machines that a section names for SSH: parsed from its options and secrets, and checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from svc_trial_runner.fleet.adapters.bundles.worker_commands import DEFAULT_FOLDER
from svc_trial_runner.fleet.domain.agents import PlatformProblem, PlatformSection
from svc_trial_runner.fleet.domain.section_values import gpu_numbers

DEFAULT_PORT: Final = 22
_PORT_LIMIT: Final = 65535
_SHOWN_CHARACTERS: Final = 100
"""Longer values are shortened in problems."""
_LOGIN_FIELDS: Final = (
    "host", "user", "port", "password", "sshKeyFile", "sshPassphrase", "hostKeyPolicy",
)  # fmt: skip


class HostKeyPolicy(StrEnum):
    """Rules for a host key that no file of known hosts has: refuse it, or accept and store it."""

    STRICT = "strict"
    """It is refused."""
    ACCEPT_NEW = "accept-new"
    """It is accepted once and written down; a changed key is refused."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Machine reached over SSH: login, host key policy, slots, folders, setup lines, GPU rules."""

    index: int | None
    """In `machineList`; None: the section itself has the fields of the login."""
    host: str
    user: str
    port: int = DEFAULT_PORT
    """22 is also what an entry without a port has: a `Port` of the user's `ssh_config` wins."""
    password: str | None = field(default=None, repr=False)
    key_file: Path | None = None
    passphrase: str | None = field(default=None, repr=False)
    host_key_policy: HostKeyPolicy = HostKeyPolicy.STRICT
    slots: int | None = None
    """Trials at once; None: what the order of the agent asks for."""
    setup_lines: tuple[str, ...] = ()
    """Lines of the shell that run before each trial."""
    python_path: str = ""
    """Folder that is searched for Python first and put first on the PATH of trials; empty: none."""
    folder: str = DEFAULT_FOLDER
    """Folder of NNI on the machine; `~` is the home of its user."""
    gpu_indices: tuple[int, ...] | None = None
    """GPUs that trials may use; None: all."""
    use_active_gpu: bool | None = None
    """Whether trials may use GPUs that other programs use; None: the experiment's rule holds."""
    trials_per_gpu: int | None = None
    """Trials at once on a GPU; None: the experiment's rule holds."""

    @property
    def address(self) -> str:
        """`user@host:port`, which names the machine in messages and files."""
        return f"{self.user}@{self.host}:{self.port}"

    def field(self, name: str) -> str:
        """Return the path of a field of this machine within the section."""
        return _prefix(self.index) + name


def _prefix(index: int | None) -> str:
    """Return the prefix of a machine's field in error paths: `machineList[0].`, or empty."""
    return "" if index is None else f"machineList[{index}]."


def parse_login(section: PlatformSection) -> tuple[Machine | None, list[PlatformProblem]]:
    """Return the login node that a section names by `host`, and the problems of its fields.

    Args:
        section: whose own fields are those of the login; secret values are looked up by name.

    Returns:
        The machine, None if there is no host or a rule is broken; problems.
    """
    entry = {name: section.options.get(name) for name in _LOGIN_FIELDS}
    if entry["host"] is None:
        return None, []
    problems: list[PlatformProblem] = []
    return _EntryReader(None, entry, section.secrets, problems).machine(), problems


def parse_machines(section: PlatformSection) -> tuple[list[Machine], list[PlatformProblem]]:
    """Return the machines of a section, and the problems of their entries.

    Args:
        section: a section of the platform `remote`; secret values are looked up by path.

    Returns:
        Machines without problems, in their order; problems.
    """
    entries = section.options.get("machineList")
    if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
        return [], [
            PlatformProblem(
                "machineList", "must name at least one machine", remedy="add host and user of each"
            )
        ]
    machines: list[Machine] = []
    problems: list[PlatformProblem] = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            problems.append(
                PlatformProblem(f"machineList[{index}]", "must be a map with host and user")
            )
            continue
        reader = _EntryReader(index, entry, section.secrets, problems)
        machine = reader.machine()
        if machine is not None:
            machines.append(machine)
    problems += _duplicates(machines)
    return machines, problems


def _duplicates(machines: Sequence[Machine]) -> list[PlatformProblem]:
    """Return problems of entries that name a machine a second time."""
    seen: dict[str, Machine] = {}
    problems = []
    for machine in machines:
        first = seen.setdefault(machine.address, machine)
        if first is not machine:
            problems.append(
                PlatformProblem(
                    machine.field("host"),
                    f"must differ from {first.field('host')}",
                    machine.address,
                    "use slots for several trials at once on one machine",
                )
            )
    return problems


class _EntryReader:
    """Reader of the fields of one machine's entry; collects their problems."""

    def __init__(
        self,
        index: int | None,
        entry: Mapping[str, object],
        secrets: Mapping[str, str],
        problems: list[PlatformProblem],
    ) -> None:
        self._prefix = _prefix(index)
        self._index = index
        self._entry = entry
        self._secrets = secrets
        self._problems = problems

    def machine(self) -> Machine | None:
        """Return the machine; None if the entry breaks a rule."""
        before = len(self._problems)
        key_file = self._text("sshKeyFile")
        machine = Machine(
            index=self._index,
            host=self._text("host", required=True),
            user=self._text("user", required=True),
            port=self._number("port", _PORT_LIMIT) or DEFAULT_PORT,
            password=self._secret("password"),
            key_file=Path(key_file).expanduser() if key_file else None,
            passphrase=self._secret("sshPassphrase"),
            host_key_policy=self._policy(),
            slots=self._number("slots", None),
            setup_lines=self._lines("setupLines"),
            python_path=self._text("pythonPath"),
            folder=self._text("folder") or DEFAULT_FOLDER,
            gpu_indices=self._indices("gpuIndices"),
            use_active_gpu=self._flag("useActiveGpu"),
            trials_per_gpu=self._number("maxTrialNumberPerGpu", None),
        )
        if machine.host.startswith("-") or any(one in machine.host for one in " \t\n/@"):
            self._add("host", "must be a host name or an IP address", machine.host)
        if not machine.folder.startswith(("/", "~/")):
            self._add("folder", "must be an absolute path or begin with ~/", machine.folder)
        if ";" in machine.python_path:
            self._add(
                "pythonPath",
                "must be one folder: Windows workers are not supported",
                machine.python_path,
            )
        return machine if len(self._problems) == before else None

    def _add(self, name: str, rule: str, value: object = "", remedy: str = "") -> None:
        shown = str(value)[:_SHOWN_CHARACTERS]
        self._problems.append(PlatformProblem(f"{self._prefix}{name}", rule, shown, remedy))

    def _text(self, name: str, *, required: bool = False) -> str:
        value = self._entry.get(name)
        if value is None or value == "":
            if required:
                self._add(name, "must be given")
            return ""
        if not isinstance(value, str) or "\0" in value:
            self._add(name, "must be text", value)
            return ""
        return value

    def _number(self, name: str, limit: int | None) -> int | None:
        value = self._entry.get(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # numbers of a Value message may be floats
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            self._add(name, "must be a whole number >= 1", value)
            return None
        if limit is not None and value > limit:
            self._add(name, f"must be <= {limit}", value)
            return None
        return value

    def _lines(self, name: str) -> tuple[str, ...]:
        value = self._entry.get(name)
        if value is None:
            return ()
        if isinstance(value, str):
            return tuple(value.splitlines())
        if isinstance(value, Sequence) and all(isinstance(one, str) for one in value):
            return tuple(str(one) for one in value)
        self._add(name, "must be a list of lines of the shell", value)
        return ()

    def _flag(self, name: str) -> bool | None:
        value = self._entry.get(name)
        if value is not None and not isinstance(value, bool):
            self._add(name, "must be true or false", value)
            return None
        return value

    def _indices(self, name: str) -> tuple[int, ...] | None:
        """Return numbers written as list, number or `0,1`; None: missing, or wrong (a problem)."""
        value = self._entry.get(name)
        if value is None:
            return None
        try:
            numbers = gpu_numbers(value)
        except ValueError:
            numbers = ()
        if not numbers:
            self._add(name, "must be numbers of GPUs, separated by commas", value)
        return numbers or None

    def _secret(self, name: str) -> str | None:
        """Return a secret of the secrets, else of the section's options; None if in neither."""
        value = self._secrets.get(f"{self._prefix}{name}")
        return value if value is not None else self._text(name) or None

    def _policy(self) -> HostKeyPolicy:
        value = self._entry.get("hostKeyPolicy")
        if value is None:
            return HostKeyPolicy.STRICT
        try:
            return HostKeyPolicy(str(value))
        except ValueError:
            words = " or ".join(policy.value for policy in HostKeyPolicy)
            self._add("hostKeyPolicy", f"must be {words}", value)
            return HostKeyPolicy.STRICT
