"""Options of the section `ray`, read once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from svc_trial_runner.fleet.adapters.slurm.quantities import parse_mebibytes
from svc_trial_runner.fleet.domain.agents import AgentOrder, PlatformProblem
from svc_trial_runner.fleet.domain.section_values import camel_case, finite_number, text_lines

ADDRESS: Final = "auto"
NAMESPACE: Final = "nni"
POLL_INTERVAL_S: Final = 2.0
STRATEGIES: Final = ("DEFAULT", "SPREAD")
_ADDRESS: Final = re.compile(r"(auto|[^\s/:@]+:[0-9]{1,5})\Z")
_NAMESPACE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


@dataclass(frozen=True, slots=True)
class RayOptions:
    """Options of one platform `ray`: address, resources, placement, environment, folders, reuse."""

    address: str = ADDRESS
    """`auto`: the cluster whose node this machine is; or `host:port` of its head."""
    namespace: str = NAMESPACE
    """Namespace of the actors."""
    num_cpus: float | None = None
    """CPUs of an agent; None: one for each of its slots."""
    num_gpus: float | None = None
    """GPUs of an agent; None: as many as its trials ask for."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """Custom resources of an agent: `{"special": 1}`."""
    memory: str = ""
    """Memory that Ray reserves for an agent: `16G`."""
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    """Ray's `runtime_env` of the actor, in which agent and trials run."""
    scheduling_strategy: str = ""
    """`DEFAULT` or `SPREAD`."""
    placement_group: str = ""
    """Name of an existing placement group of the namespace, whose bundles the agents use."""
    setup_lines: tuple[str, ...] = ()
    """Lines of bash that run before the trials."""
    python_path: str = ""
    """Folder that is put first on the PATH of trials."""
    home: str = ""
    """Folder of NNI on the nodes; empty: `~/.nni`."""
    reuse_mode: bool = True
    """False: an agent ends after one trial."""
    poll_interval_seconds: float = POLL_INTERVAL_S
    """Time between two looks at the agents while one is pending or starting."""

    def request(self, order: AgentOrder) -> dict[str, float]:
        """Return `CPU`, `GPU`, `memory` and own resources of an order's agent, without zeros."""
        slots = order.slots if self.reuse_mode else 1
        cpus = float(slots) if self.num_cpus is None else self.num_cpus
        gpus = self.num_gpus
        if gpus is None:
            gpus = float(slots * (order.gpus_per_trial or 0))
        mebibytes = parse_mebibytes(self.memory) if self.memory else 0
        asked = {
            "CPU": cpus,
            "GPU": gpus,
            "memory": float((mebibytes or 0) * 1024 * 1024),
            **self.resources,
        }
        return {name: amount for name, amount in asked.items() if amount}


FIELDS: Final = {camel_case(one.name): one.name for one in fields(RayOptions)}
"""Names of fields by their names in a section; others, those of all platforms, are ignored."""


def parse_options(options: Mapping[str, object]) -> RayOptions:
    """Return the options of a section; values of a wrong type are as if they were not given.

    `option_problems` reports them.
    """
    good: dict[str, Any] = {}
    for name, own in FIELDS.items():
        value = options.get(name)
        if value is not None:
            converted = _converted(own, value)
            if converted is not None:
                good[own] = converted
    return RayOptions(**good)


def option_problems(options: Mapping[str, object]) -> list[PlatformProblem]:
    """Return problems of the section's options, found without contacting the cluster."""
    problems = [
        PlatformProblem(name, f"must be {_RULES[own]}", repr(options[name])[:80])
        for name, own in FIELDS.items()
        if options.get(name) is not None and _converted(own, options[name]) is None
    ]
    parsed = parse_options(options)
    return [*problems, *_address_problems(parsed), *_placement_problems(parsed)]


def _address_problems(options: RayOptions) -> list[PlatformProblem]:
    problems = []
    if not _ADDRESS.match(options.address):
        remedy = "run NNI's services on a machine of the cluster, and give auto"
        rule = "must be auto, or host:port of the head"
        problems.append(PlatformProblem("address", rule, options.address, remedy))
    if not _NAMESPACE.match(options.namespace):
        rule = "must be 1 to 64 letters, digits, '.', '_' or '-'"
        problems.append(PlatformProblem("namespace", rule, repr(options.namespace)[:80]))
    if options.home and not options.home.startswith(("/", "~/")):
        rule = "must be an absolute path, or start with ~/"
        problems.append(PlatformProblem("home", rule, options.home))
    if options.memory and not parse_mebibytes(options.memory):
        problems.append(PlatformProblem("memory", "must be a size such as 16G", options.memory))
    return problems


def _placement_problems(options: RayOptions) -> list[PlatformProblem]:
    strategy = options.scheduling_strategy
    problems = []
    if strategy and strategy not in STRATEGIES:
        rule = f"must be {' or '.join(STRATEGIES)}"
        problems.append(PlatformProblem("schedulingStrategy", rule, strategy))
    if strategy and options.placement_group:
        rule = "must not be given with placementGroup"
        problems.append(PlatformProblem("schedulingStrategy", rule, strategy))
    taken = {"CPU": "numCpus", "GPU": "numGpus", "memory": "memory"}
    problems += [
        PlatformProblem(f"resources.{name}", "must be a custom resource", name, f"use {own}")
        for name, own in taken.items()
        if name in options.resources
    ]
    return problems


_RULES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "address",
            "namespace",
            "memory",
            "scheduling_strategy",
            "placement_group",
            "python_path",
            "home",
        ),
        "text in one line",
    ),
    **dict.fromkeys(("num_cpus", "num_gpus"), "a number of at least 0"),
    "poll_interval_seconds": "a number of at least 0.1",
    "resources": "names with numbers above 0",
    "runtime_env": "a mapping with texts as names",
    "setup_lines": "a list of texts",
    "reuse_mode": "true or false",
}


def _converted(own: str, value: object) -> object | None:
    """Parse a value to its field's type; None: another type, or out of range."""
    match own:
        case "num_cpus" | "num_gpus":
            return _number(value, 0.0)
        case "poll_interval_seconds":
            return _number(value, 0.1)
        case "resources":
            return _amounts(value)
        case "runtime_env":
            good = isinstance(value, Mapping) and all(isinstance(name, str) for name in value)
            return value if good else None
        case "setup_lines":
            return text_lines(value)
        case "reuse_mode":
            return value if isinstance(value, bool) else None
        case _:
            return value if isinstance(value, str) and value.isprintable() else None


def _number(value: object, least: float) -> float | None:
    number = finite_number(value)
    return number if number is not None and number >= least else None


def _amounts(value: object) -> dict[str, float] | None:
    if not isinstance(value, Mapping):
        return None
    found = {name: _number(amount, 0.0) for name, amount in value.items()}
    if not all(isinstance(name, str) and amount for name, amount in found.items()):
        return None
    return {name: amount for name, amount in found.items() if amount}
