"""Options of the section `dlc`, read once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.domain.section_values import POLL_S, poll_problems

JOB_TYPES: Final = ("TFJob", "PyTorchJob")
SECRET: Final = "accessKeySecret"  # noqa: S105 - the name of a field
_MOST_POLL_S: Final = 1e6
LOCAL_FOLDER: Final = "/home/admin/workspace/"
CONTAINER_FOLDER: Final = "/root/data/"
_REGION: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z")
_ENDPOINT: Final = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?\Z")
_REQUIRED: Final = ("image", "ecsSpec", "region", "nasDataSourceId", "accessKeyId")


@dataclass(frozen=True, slots=True)
class DlcOptions:
    """Options of one platform `dlc`: image, instance, region, NAS, folders, interval, reuse."""

    role: str = "Worker"
    image: str = ""
    job_type: str = "TFJob"
    instance_type: str = ""
    region: str = ""
    endpoint: str = ""
    """Empty: that of the region."""
    workspace: str = ""
    data_source: str = ""
    """Of the NAS that carries the settings of agents."""
    key_id: str = ""
    local_folder: str = LOCAL_FOLDER
    """Folder at which this machine mounts the NAS."""
    container_folder: str = CONTAINER_FOLDER
    """Folder at which containers mount it."""
    python: str = "python3"
    python_path: str = ""
    setup_lines: tuple[str, ...] = ()
    poll_interval_s: float = POLL_S
    reuse_mode: bool = True
    """False: an agent ends after one trial."""

    @property
    def address(self) -> str:
        """`scheme://host:port` of the API."""
        return self.endpoint or f"https://pai-dlc.{self.region}.aliyuncs.com"


def parse_options(section: Mapping[str, object]) -> DlcOptions:
    """Return the options of a section; a value of a wrong type counts as not given.

    `option_problems` reports what is wrong with them.
    """
    poll, lines = section.get("pollIntervalSeconds"), section.get("setupLines")
    return DlcOptions(
        role=_text(section, "type") or "Worker",
        image=_text(section, "image"),
        job_type=_text(section, "jobType") or "TFJob",
        instance_type=_text(section, "ecsSpec"),
        region=_text(section, "region"),
        endpoint=_text(section, "endpoint").rstrip("/"),
        workspace=_text(section, "workspaceId"),
        data_source=_text(section, "nasDataSourceId"),
        key_id=_text(section, "accessKeyId"),
        local_folder=_text(section, "localStorageMountPoint") or LOCAL_FOLDER,
        container_folder=_text(section, "containerStorageMountPoint") or CONTAINER_FOLDER,
        python=_text(section, "python") or "python3",
        python_path=_text(section, "pythonPath"),
        setup_lines=tuple(map(str, lines)) if isinstance(lines, list | tuple) else (),
        poll_interval_s=_interval(poll),
        reuse_mode=section.get("reuseMode") is not False,
    )


def option_problems(
    section: Mapping[str, object], secrets: Mapping[str, str]
) -> list[PlatformProblem]:
    """Return which rules a section breaks without a request.

    Args:
        section: options without secret values.
        secrets: secret values by the path of their field.
    """
    options = parse_options(section)
    problems = [
        PlatformProblem(name, "must be given") for name in _REQUIRED if not _text(section, name)
    ]
    if not secrets.get(SECRET):
        problems.append(PlatformProblem(SECRET, "must be given"))
    if options.job_type not in JOB_TYPES:
        rule = f"must be one of {', '.join(JOB_TYPES)}"
        problems.append(PlatformProblem("jobType", rule, options.job_type[:80]))
    pods = section.get("podCount")
    if pods not in {None, 1}:
        rule = "must be 1: a pod is an agent, and trials over several pods are not supported"
        problems.append(PlatformProblem("podCount", rule, repr(pods)[:80], "use maxAgents"))
    if options.region and not _REGION.match(options.region):
        rule = "must be the id of a region, such as cn-hangzhou"
        problems.append(PlatformProblem("region", rule, options.region[:80]))
    if options.endpoint and not _ENDPOINT.match(options.endpoint):
        rule = "must be https://host"
        problems.append(PlatformProblem("endpoint", rule, options.endpoint[:80]))
    problems += poll_problems(options.poll_interval_s)
    for name, folder in (
        ("localStorageMountPoint", options.local_folder),
        ("containerStorageMountPoint", options.container_folder),
    ):
        if not folder.startswith("/") or "\0" in folder:
            problems.append(PlatformProblem(name, "must be an absolute path", folder[:80]))
    return problems


def _interval(value: object) -> float:
    """Return a poll interval in seconds; the default if the value is no number, or far too big."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return POLL_S
    return float(value) if abs(value) <= _MOST_POLL_S else POLL_S  # NaN is not, either


def _text(section: Mapping[str, object], name: str) -> str:
    value = section.get(name)
    return value.strip() if isinstance(value, str) else ""
