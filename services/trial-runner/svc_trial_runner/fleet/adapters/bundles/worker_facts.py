"""Facts that a worker reports of itself, and the rules that it must keep to run an agent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from svc_trial_runner.fleet.adapters.bundles.worker_commands import (
    MINIMUM_PYTHON,
    CommandResult,
    WorkerFailure,
    read_report,
)

NEEDED_BYTES: Final = 200 * 1024 * 1024
"""Of a bundle packed and unpacked, its compiled modules, and logs."""
NEEDED_FILES: Final = 4000


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """Facts of a probed machine: Python, platform, folder, free space, bundles, clock, cores."""

    host: str
    python: tuple[int, int]
    implementation: str
    """`cpython`, with the flags of its binary interface."""
    interpreter: str
    """Absolute path."""
    system: str
    machine: str
    platform_tag: str
    """Of wheels that run there; empty: none do."""
    folder: str
    """Absolute path of the folder of NNI."""
    home: str
    free_bytes: int
    free_files: int | None
    """None: the file system has no limit of its own."""
    noexec: bool
    """True if the folder's file system refuses to map programs."""
    bundles: tuple[str, ...]
    """Hashes of the unpacked bundles."""
    time_s: float
    """The machine's clock, in seconds since 1970."""
    cores: int


def read_facts(result: CommandResult, host: str = "the machine") -> WorkerFacts:
    """Return the facts in the report of a probe.

    Raises:
        WorkerFailure: the probe failed.
    """
    report = read_report(result, host)
    return _facts(report)


def _facts(report: Mapping[str, Any]) -> WorkerFacts:
    major, minor = report["python"][:2]
    return WorkerFacts(
        host=report["host"],
        python=(major, minor),
        implementation=report["implementation"],
        interpreter=report["interpreter"],
        system=report["system"],
        machine=report["machine"],
        platform_tag=report["platform_tag"],
        folder=report["folder"],
        home=report["home"],
        free_bytes=report["free_bytes"],
        free_files=report["free_files"],
        noexec=report["noexec"],
        bundles=tuple(report["bundles"]),
        time_s=report["time"],
        cores=report["cores"],
    )


def check_facts(facts: WorkerFacts) -> None:
    """Raise WorkerFailure unless an agent can run on a machine.

    Raises:
        WorkerFailure: with the first rule that is broken, and what to do about it.
    """
    wanted = ".".join(map(str, MINIMUM_PYTHON))
    place = f"{facts.folder} on {facts.host}"
    rules = (
        (
            facts.system == "Linux",
            "wrong_system",
            f"{facts.host} runs {facts.system}; agents run on Linux",
            "use a machine with Linux",
        ),
        (
            facts.python >= MINIMUM_PYTHON,
            "no_python",
            f"Python of {facts.host} is {facts.python[0]}.{facts.python[1]}, needed is {wanted}",
            f"install Python {wanted} or newer there, or set pythonPath to its folder",
        ),
        (
            facts.implementation == "cpython",
            "wrong_python",
            f"there are no wheels for {facts.interpreter} on {facts.host}: {facts.implementation}",
            "set pythonPath to the folder of an ordinary build of CPython",
        ),
        (
            facts.platform_tag != "",
            "wrong_machine",
            f"there are no wheels for the C library of {facts.host} ({facts.machine})",
            "use a machine with glibc or musl",
        ),
        (
            not facts.noexec,
            "noexec",
            f"{place} is on a file system that is mounted noexec",
            "choose a folder on another file system",
        ),
        (
            facts.free_bytes >= NEEDED_BYTES or bool(facts.bundles),
            "disk_full",
            f"{place} has {facts.free_bytes >> 20} MB free, needed are {NEEDED_BYTES >> 20} MB",
            "free space there, or choose a folder on another disk",
        ),
        (
            facts.free_files is None or facts.free_files >= NEEDED_FILES or bool(facts.bundles),
            "disk_full",
            f"{place} has room for {facts.free_files} files, needed are {NEEDED_FILES}",
            "remove files there, or choose a folder on another disk",
        ),
    )
    for kept, code, message, remedy in rules:
        if not kept:
            raise WorkerFailure(code, message, remedy, permanent=True)
