"""Options of the section `openpai`, read once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from svc_trial_runner.fleet.adapters.agent_image import image_problems
from svc_trial_runner.fleet.adapters.job_options import (
    JobOptions,
    job_option_problems,
    parse_job_options,
)
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.domain.section_values import (
    mebibytes,
    missing_problems,
    section_text,
    whole_number,
)

TOKEN: Final = "token"  # noqa: S105 - the name of a field
PROTOCOL: Final = "openpaiConfig"
PLUGINS: Final = "com.microsoft.pai.runtimeplugin"
_RESOURCES: Final = "resourcePerInstance"


@dataclass(frozen=True, slots=True)
class OpenpaiOptions:
    """Options of one platform `openpai`: login, resources, image, storage, own job, agents."""

    host: str = ""
    """`scheme://host:port` of the cluster, without a path."""
    username: str = ""
    cpus: int | None = None
    memory_mb: int | None = None
    """CPUs and memory of a trial."""
    image: str = ""
    """Empty: the image of NNI's trial-runner of this version."""
    virtual_cluster: str = ""
    storage: str = ""
    """Name of a storage that the containers mount."""
    protocol: Mapping[str, Any] = field(default_factory=dict)
    """Job in OpenPAI's own form; empty: none."""
    agent: JobOptions = field(default_factory=JobOptions)


def parse_options(section: Mapping[str, object]) -> OpenpaiOptions:
    """Return the options of a section; a value of a wrong type counts as not given.

    `option_problems` reports what is wrong with them.
    """
    protocol = section.get(PROTOCOL)
    return OpenpaiOptions(
        host=_host(section_text(section, "host")),
        username=section_text(section, "username"),
        cpus=whole_number(section.get("trialCpuNumber"), 1),
        memory_mb=_megabytes(section_text(section, "trialMemorySize")),
        image=section_text(section, "dockerImage"),
        virtual_cluster=section_text(section, "virtualCluster"),
        storage=section_text(section, "storageConfigName"),
        protocol=protocol if isinstance(protocol, Mapping) else {},
        agent=parse_job_options(section),
    )


def option_problems(
    section: Mapping[str, object], secrets: Mapping[str, str]
) -> list[PlatformProblem]:
    """Return problems of the section's options, found without contacting the cluster.

    Args:
        section: options without secret values.
        secrets: secret values by the path of their field.
    """
    options = parse_options(section)
    problems = [*_login_problems(section, options, secrets), *_protocol_problems(options)]
    problems += image_problems("dockerImage", options.image)
    problems += job_option_problems(section)
    problems += _resource_problems(section, options)
    return problems


def _resource_problems(
    section: Mapping[str, object], options: OpenpaiOptions
) -> Iterator[PlatformProblem]:
    for name, value, rule in (
        ("trialCpuNumber", options.cpus, "a whole number of at least 1"),
        ("trialMemorySize", options.memory_mb, "a size such as 8gb"),
    ):
        given = section.get(name)
        if given is not None and value is None:
            yield PlatformProblem(name, f"must be {rule}", repr(given)[:80])
        elif given is None and not options.protocol:
            yield PlatformProblem(name, f"must be given, or openpaiConfig: {rule}")


def _login_problems(
    section: Mapping[str, object], options: OpenpaiOptions, secrets: Mapping[str, str]
) -> Iterator[PlatformProblem]:
    if not options.host:
        rule = "must be the address of the cluster, such as https://pai.example.org"
        yield PlatformProblem("host", rule, section_text(section, "host")[:80])
    yield from missing_problems(section, ("username",))
    if not secrets.get(TOKEN):
        remedy = "copy it from My profile of OpenPAI's portal"
        yield PlatformProblem(TOKEN, "must be given", "", remedy)


def _protocol_problems(options: OpenpaiOptions) -> Iterator[PlatformProblem]:
    protocol = options.protocol
    if not protocol:
        return
    roles = protocol.get("taskRoles")
    if not isinstance(roles, Mapping) or not roles:
        yield PlatformProblem("openpaiConfig.taskRoles", "must be given")
        return
    for name, role in roles.items():
        place = f"openpaiConfig.taskRoles.{name}"
        if not isinstance(role, Mapping):
            yield PlatformProblem(place, "must be a mapping")
        elif not isinstance(role.get(_RESOURCES, {}), Mapping):
            yield PlatformProblem(f"{place}.{_RESOURCES}", "must be a mapping")
    images = protocol.get("prerequisites", [])
    if not isinstance(images, list) or not all(isinstance(one, Mapping) for one in images):
        yield PlatformProblem("openpaiConfig.prerequisites", "must be a list of mappings")
    for part in ("secrets", "extras", "defaults"):
        if not isinstance(protocol.get(part, {}), Mapping):
            yield PlatformProblem(f"openpaiConfig.{part}", "must be a mapping")
            return
    plugins = protocol.get("extras", {}).get(PLUGINS, [])
    if not isinstance(plugins, list) or not all(isinstance(one, Mapping) for one in plugins):
        rule = "must be a list of mappings"
        yield PlatformProblem(f"openpaiConfig.extras.{PLUGINS}", rule)


def _host(text: str) -> str:
    """Return scheme, host and port of an address; empty: it is none. HTTPS is the default."""
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return ""
    known = parts.scheme in {"http", "https"} and parts.hostname
    return f"{parts.scheme}://{parts.hostname}{port}" if known else ""


def _megabytes(size: str) -> int | None:
    return int(mebibytes(size) or 0) or None
