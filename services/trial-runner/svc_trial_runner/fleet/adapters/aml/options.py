"""Options of the section `aml`, read once."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from svc_trial_runner.fleet.adapters.agent_image import image_problems
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
    whole_number,
)

ENDPOINT: Final = "https://management.azure.com"
"""Azure Resource Manager of the public cloud."""
_MOST_TRIALS: Final = 1e6
"""Larger numbers of trials per GPU are mistakes."""
_REQUIRED: Final = ("subscriptionId", "resourceGroup", "workspaceName", "computeTarget")
_SUBSCRIPTION: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")


@dataclass(frozen=True, slots=True)
class AmlOptions:
    """Options of one platform `aml`: workspace, compute target, image, GPU rules, agents."""

    subscription: str = ""
    resource_group: str = ""
    workspace: str = ""
    compute: str = ""
    image: str = ""
    """Empty: the image of NNI's trial-runner of this version."""
    endpoint: str = ENDPOINT
    """Azure Resource Manager, `https://host`."""
    trials_per_gpu: int | None = None
    use_active_gpu: bool | None = None
    """GPU rules of the agents; None: that of the experiment."""
    agent: JobOptions = field(default_factory=JobOptions)

    @property
    def workspace_id(self) -> str:
        """Id of the workspace in Azure Resource Manager, which is its path."""
        return (
            f"/subscriptions/{quote(self.subscription, safe='')}"
            f"/resourceGroups/{quote(self.resource_group, safe='')}"
            "/providers/Microsoft.MachineLearningServices"
            f"/workspaces/{quote(self.workspace, safe='')}"
        )

    @property
    def datastores_uri(self) -> str:
        """Start of the addresses of data in the workspace's datastores."""
        return (
            f"azureml://subscriptions/{quote(self.subscription, safe='')}"
            f"/resourcegroups/{quote(self.resource_group, safe='')}"
            f"/workspaces/{quote(self.workspace, safe='')}/datastores"
        )

    @property
    def compute_id(self) -> str:
        """Id of the compute target in Azure Resource Manager."""
        return f"{self.workspace_id}/computes/{quote(self.compute, safe='')}"


def parse_options(section: Mapping[str, object]) -> AmlOptions:
    """Return the options of a section; a value of a wrong type counts as not given.

    `option_problems` reports what is wrong with them.
    """
    active = section.get("useActiveGpu")
    return AmlOptions(
        subscription=section_text(section, "subscriptionId"),
        resource_group=section_text(section, "resourceGroup"),
        workspace=section_text(section, "workspaceName"),
        compute=section_text(section, "computeTarget"),
        image=section_text(section, "dockerImage"),
        endpoint=section_text(section, "endpoint").rstrip("/") or ENDPOINT,
        trials_per_gpu=_trials(section.get("maxTrialNumberPerGpu")),
        use_active_gpu=active if isinstance(active, bool) else None,
        agent=parse_job_options(section),
    )


def option_problems(section: Mapping[str, object]) -> list[PlatformProblem]:
    """Return problems of the section's options, found without a request to Azure."""
    options = parse_options(section)
    return [
        *missing_problems(section, _REQUIRED),
        *_value_problems(section, options),
        *job_option_problems(section),
    ]


def _value_problems(
    section: Mapping[str, object], options: AmlOptions
) -> Iterator[PlatformProblem]:
    if options.subscription and not _SUBSCRIPTION.match(options.subscription):
        rule = "must be the id of a subscription, not its name"
        remedy = "az account list --output table shows the ids"
        yield PlatformProblem("subscriptionId", rule, options.subscription[:80], remedy)
    yield from image_problems("dockerImage", options.image)
    if not is_endpoint(options.endpoint):
        rule = "must be https://host, the Azure Resource Manager of your cloud"
        yield PlatformProblem("endpoint", rule, options.endpoint[:80])
    per_gpu = section.get("maxTrialNumberPerGpu")
    if per_gpu is not None and options.trials_per_gpu is None:
        rule = "must be a whole number >= 1"
        yield PlatformProblem("maxTrialNumberPerGpu", rule, repr(per_gpu)[:80])
    active = section.get("useActiveGpu")
    if active is not None and options.use_active_gpu is None:
        yield PlatformProblem("useActiveGpu", "must be true or false", repr(active)[:80])


def _trials(value: object) -> int | None:
    count = whole_number(value, 1)
    return count if count is not None and count <= _MOST_TRIALS else None
