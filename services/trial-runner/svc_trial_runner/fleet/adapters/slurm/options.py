"""Options of the section `slurm`, read once: values that the script and the checks are made of."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from svc_trial_runner.fleet.adapters.slurm.quantities import parse_mebibytes, parse_time_limit
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.domain.section_values import (
    camel_case,
    finite_number,
    text_lines,
    whole_number,
)

GRACE_S: Final = 60
"""Time before its limit at which a job gets TERM, so that its trials can be handed over."""
POLL_INTERVAL_S: Final = 5.0
APPTAINER: Final = "apptainer"
PYXIS: Final = "pyxis"

OWN_OPTIONS: Final = {
    "array": "the number of agents follows from the pool",
    "job-name": "jobs have the names of their agents",
    "output": "use logFolder",
    "error": "use logFolder",
    "chdir": "agents have folders of their own",
    "signal": "use graceSeconds",
    "wrap": "the script is that of the agent",
    "export": "jobs have the login environment; use setupLines",
    "requeue": "a job that is requeued starts the same agent again",
    "no-requeue": "a job that is requeued starts the same agent again",
    "open-mode": "it is set always",
    "parsable": "it is set always",
    "partition": "use the field partition",
    "account": "use the field account",
    "qos": "use the field qos",
    "time": "use timeLimit",
    "gres": "use the field gres",
    "comment": "use the field comment",
}
"""Options of sbatch that are not raw ones, and why."""
_SHORT_OPTIONS: Final = {
    "a": "array", "J": "job-name", "o": "output", "e": "error", "D": "chdir", "p": "partition",
    "A": "account", "q": "qos", "t": "time", "N": "nodes", "n": "ntasks",
}  # fmt: skip
_VERSION: Final = re.compile(r"3\.(1[1-9]|[2-9][0-9])(\.\d+)?\Z")
_ONE_LINE: Final = re.compile(r"[^\x00-\x1f\x7f]*\Z")
_OPTION: Final = re.compile(r"(?:--([a-z][a-z0-9-]*)(?:=.*)?|-([a-zA-Z])\s*.*)\Z")


@dataclass(frozen=True, slots=True)
class SlurmOptions:
    """Options of one platform `slurm`: job limits, resources, container, folders; empty: unset."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    time_limit: str = ""
    """Of an agent's job; empty: that of the partition."""
    gres: str = ""
    """Generic resources of an agent: `gpu:a100:2`; empty: GPUs as its trials ask for."""
    cpus: int | None = None
    """CPUs of an agent."""
    memory: str = ""
    """Memory of an agent: `16G`."""
    nodes: int = 1
    """Nodes of a trial; more than 1 is refused."""
    options: tuple[str, ...] = ()
    """Raw options of sbatch: `--constraint=a100`."""
    comment: str = ""
    log_folder: str = ""
    """Folder of the jobs' output on the shared file system; empty: the agent's own."""
    setup_lines: tuple[str, ...] = ()
    """Lines of the shell that run before the agent and before each trial."""
    image: str = ""
    """Image of the container in which the agent and its trials run; empty: none."""
    image_runtime: str = APPTAINER
    """`apptainer` or `pyxis`."""
    image_options: tuple[str, ...] = ()
    """Raw options of the container's runtime: `--nv`."""
    python: str = ""
    """Interpreter of the agent on the compute nodes, at least 3.11; empty: as on this machine."""
    python_version: str = ""
    """Version of `python` in the image: `3.11`; required with an image."""
    python_path: str = ""
    """Folder that is put first on the PATH of agents and trials."""
    home: str = ""
    """Folder of NNI on the shared file system; empty: `~/.nni`."""
    arrays: bool = True
    """True if agents that are launched together are one job array."""
    reuse_mode: bool = True
    """False: an agent ends after one trial."""
    max_trial_duration: str = ""
    """An agent that has less time left than this takes no trial; empty: no such rule."""
    grace_seconds: int = GRACE_S
    poll_interval_seconds: float = POLL_INTERVAL_S
    """Time between two looks at the queue while jobs are pending or starting."""
    commands_folder: str = ""
    """Folder of Slurm's commands, where they are not on the PATH."""
    slurm_conf: str = ""
    """Slurm's configuration, where it is not at its usual place."""

    @property
    def time_limit_s(self) -> int | None:
        """Time limit of a job; None: that of the partition."""
        return parse_time_limit(self.time_limit)


FIELDS: Final = {camel_case(one.name): one.name for one in fields(SlurmOptions)}
"""Names of fields by their names in a section; others, those of all platforms, are ignored."""


def parse_options(options: Mapping[str, object]) -> SlurmOptions:
    """Return the options of a section; values of a wrong type are as if they were not given.

    `option_problems` reports them.
    """
    good: dict[str, object] = {}
    for name, field in FIELDS.items():
        value = options.get(name)
        if value is not None and _converted(field, value) is not None:
            good[field] = _converted(field, value)
    return SlurmOptions(**good)  # type: ignore[arg-type] # each was converted to its field's type


def option_problems(options: Mapping[str, object]) -> list[PlatformProblem]:
    """Return problems of the section's options, found without contacting the cluster."""
    problems = [
        PlatformProblem(name, "must be " + _RULES[_kind(field)], repr(options[name])[:80])
        for name, field in FIELDS.items()
        if options.get(name) is not None and _converted(field, options[name]) is None
    ]
    parsed = parse_options(options)
    return [
        *problems,
        *_time_problems(parsed),
        *_text_problems(parsed),
        *(one for index, raw in enumerate(parsed.options) for one in _raw_problems(index, raw)),
        *_node_problems(parsed),
    ]


def _kind(field: str) -> type:
    default = getattr(SlurmOptions(), field)
    return int if default is None else type(default)


_RULES: Final[Mapping[type, str]] = {
    str: "text",
    int: "a whole number of at least 1",
    float: "a number of at least 0.1",
    bool: "true or false",
    tuple: "a list of texts",
}


def _converted(field: str, value: object) -> object | None:
    """Parse a value to its field's type; None: another type, or out of range."""
    kind = _kind(field)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is str:
        return str(value) if isinstance(value, str) or is_number else None
    if kind is bool:
        return value if isinstance(value, bool) else None
    if kind is tuple:
        return text_lines(value)
    if kind is float:
        number = finite_number(value)
        return number if number is not None and number >= 0.1 else None  # noqa: PLR2004 - as `_RULES` says
    return whole_number(value, 1)


def _time_problems(options: SlurmOptions) -> list[PlatformProblem]:
    problems = [
        PlatformProblem(name, "must be a time such as 2h, 90m, 1-12:00:00 or 60 (minutes)", value)
        for name, value in (
            ("timeLimit", options.time_limit),
            ("maxTrialDuration", options.max_trial_duration),
        )
        if value and not parse_time_limit(value)
    ]
    limit_s = options.time_limit_s
    duration_s = parse_time_limit(options.max_trial_duration)
    if limit_s and duration_s and duration_s + options.grace_seconds > limit_s:
        problems.append(
            PlatformProblem(
                "timeLimit",
                "must be longer than maxTrialDuration and graceSeconds together",
                options.time_limit,
                "no trial would ever fit",
            )
        )
    if limit_s and options.grace_seconds >= limit_s:
        problems.append(
            PlatformProblem(
                "graceSeconds", "must be shorter than timeLimit", str(options.grace_seconds)
            )
        )
    return problems


def _text_problems(options: SlurmOptions) -> list[PlatformProblem]:
    problems = [
        PlatformProblem(name, "must be one line without control characters", repr(value)[:80])
        for name, value in _lines(options)
        if not _ONE_LINE.match(value)
    ]
    if options.memory and not parse_mebibytes(options.memory):
        problems.append(PlatformProblem("memory", "must be a size such as 16G", options.memory))
    if options.image_runtime not in {APPTAINER, PYXIS}:
        rule = f"must be {APPTAINER} or {PYXIS}"
        problems.append(PlatformProblem("imageRuntime", rule, options.image_runtime))
    if options.image and not _VERSION.match(options.python_version):
        rule = "must be the version of Python in the image: 3.11 or later"
        problems.append(PlatformProblem("pythonVersion", rule, options.python_version))
    problems.extend(
        PlatformProblem(name, "must be an absolute path, or start with ~/", value)
        for name, value in (("home", options.home), ("logFolder", options.log_folder))
        if value and not value.startswith(("/", "~/"))
    )
    return problems


def _lines(options: SlurmOptions) -> list[tuple[str, str]]:
    """Return (name, text) of all text options and list items, each of which must be one line."""
    found: list[tuple[str, str]] = []
    for name, field in FIELDS.items():
        value = getattr(options, field)
        if isinstance(value, str):
            found.append((name, value))
        elif isinstance(value, tuple):
            found.extend((f"{name}[{index}]", one) for index, one in enumerate(value))
    return found


def _raw_problems(index: int, raw: str) -> list[PlatformProblem]:
    field = f"options[{index}]"
    match = _OPTION.match(raw.strip())
    if match is None:
        return [PlatformProblem(field, "must be an option of sbatch: --name=value", raw)]
    name = match[1] or _SHORT_OPTIONS.get(match[2], match[2])
    if name in OWN_OPTIONS:
        return [PlatformProblem(field, f"must not be --{name}", raw, OWN_OPTIONS[name])]
    if name in {"nodes", "ntasks", "ntasks-per-node", "hetjob"} and not re.search(
        r"[=\s]\s*1(?:-1)?\Z|[Nn]1\Z", raw.strip()
    ):
        return [_several_nodes(field, raw)]
    return []


def _node_problems(options: SlurmOptions) -> list[PlatformProblem]:
    return [_several_nodes("nodes", str(options.nodes))] if options.nodes > 1 else []


def _several_nodes(field: str, value: str) -> PlatformProblem:
    return PlatformProblem(
        field,
        "must be 1: trials over several nodes are not supported",
        value,
        "an agent and its trials run on one node; several agents use several nodes",
    )
