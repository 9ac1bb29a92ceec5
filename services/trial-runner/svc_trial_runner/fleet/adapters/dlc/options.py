"""Options of the section `dlc`, read once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from svc_trial_runner.fleet.adapters.job_options import (
    JobOptions,
    job_option_problems,
    parse_job_options,
)
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.domain.section_values import (
    is_endpoint,
    missing_problems,
    section_text,
)

JOB_TYPES: Final = ("TFJob", "PyTorchJob")
SECRET: Final = "accessKeySecret"  # noqa: S105 - the name of a field
LOCAL_FOLDER: Final = "/home/admin/workspace/"
CONTAINER_FOLDER: Final = "/root/data/"
_REGION: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z")
_REQUIRED: Final = ("image", "ecsSpec", "region", "nasDataSourceId", "accessKeyId")


@dataclass(frozen=True, slots=True)
class DlcOptions:
    """Options of one platform `dlc`: image, instance, region, NAS, folders, agents."""

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
    agent: JobOptions = field(default_factory=JobOptions)

    @property
    def address(self) -> str:
        """`scheme://host:port` of the API."""
        return self.endpoint or f"https://pai-dlc.{self.region}.aliyuncs.com"


def parse_options(section: Mapping[str, object]) -> DlcOptions:
    """Return the options of a section; a value of a wrong type counts as not given.

    `option_problems` reports what is wrong with them.
    """
    return DlcOptions(
        role=section_text(section, "type") or "Worker",
        image=section_text(section, "image"),
        job_type=section_text(section, "jobType") or "TFJob",
        instance_type=section_text(section, "ecsSpec"),
        region=section_text(section, "region"),
        endpoint=section_text(section, "endpoint").rstrip("/"),
        workspace=section_text(section, "workspaceId"),
        data_source=section_text(section, "nasDataSourceId"),
        key_id=section_text(section, "accessKeyId"),
        local_folder=section_text(section, "localStorageMountPoint") or LOCAL_FOLDER,
        container_folder=section_text(section, "containerStorageMountPoint") or CONTAINER_FOLDER,
        agent=parse_job_options(section),
    )


def option_problems(
    section: Mapping[str, object], secrets: Mapping[str, str]
) -> list[PlatformProblem]:
    """Return problems of the section's options, found without a request to PAI-DLC.

    Args:
        section: options without secret values.
        secrets: secret values by the path of their field.
    """
    options = parse_options(section)
    problems = missing_problems(section, _REQUIRED)
    if not secrets.get(SECRET):
        problems.append(PlatformProblem(SECRET, "must be given"))
    if options.job_type not in JOB_TYPES:
        rule = f"must be one of {', '.join(JOB_TYPES)}"
        problems.append(PlatformProblem("jobType", rule, options.job_type[:80]))
    pods = section.get("podCount")
    if pods is not None and pods != 1:
        rule = "must be 1: a pod is an agent, and trials over several pods are not supported"
        problems.append(PlatformProblem("podCount", rule, repr(pods)[:80], "use maxAgents"))
    if options.region and not _REGION.match(options.region):
        rule = "must be the id of a region, such as cn-hangzhou"
        problems.append(PlatformProblem("region", rule, options.region[:80]))
    if options.endpoint and not is_endpoint(options.endpoint):
        rule = "must be https://host"
        problems.append(PlatformProblem("endpoint", rule, options.endpoint[:80]))
    problems += job_option_problems(section)
    for name, folder in (
        ("localStorageMountPoint", options.local_folder),
        ("containerStorageMountPoint", options.container_folder),
    ):
        if not folder.startswith("/") or "\0" in folder:
            problems.append(PlatformProblem(name, "must be an absolute path", folder[:80]))
    return problems
