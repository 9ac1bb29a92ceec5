"""Options of the section `aml`, read once."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.domain.section_values import POLL_S, poll_problems

ENDPOINT: Final = "https://management.azure.com"
"""Azure Resource Manager of the public cloud."""
IMAGE: Final = "nni/trial-runner"
_MOST_POLL_S: Final = 1e6
_REQUIRED: Final = ("subscriptionId", "resourceGroup", "workspaceName", "computeTarget")
_SUBSCRIPTION: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")
_ENDPOINT: Final = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?\Z")
_PREDECESSOR: Final = re.compile(r"(docker\.io/)?(msranni|nnimsra)/nni(:|@|\Z)")
"""Image of NNI 3.0 and earlier, which has another agent."""


@dataclass(frozen=True, slots=True)
class AmlOptions:
    """Options of one platform `aml`: workspace, compute target, image, GPU rules, interval."""

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
    python: str = "python3"
    python_path: str = ""
    setup_lines: tuple[str, ...] = ()
    poll_interval_s: float = POLL_S
    reuse_mode: bool = True
    """False: an agent ends after one trial."""

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
    lines = section.get("setupLines")
    active = section.get("useActiveGpu")
    return AmlOptions(
        subscription=_text(section, "subscriptionId"),
        resource_group=_text(section, "resourceGroup"),
        workspace=_text(section, "workspaceName"),
        compute=_text(section, "computeTarget"),
        image=_text(section, "dockerImage"),
        endpoint=_text(section, "endpoint").rstrip("/") or ENDPOINT,
        trials_per_gpu=_count(section.get("maxTrialNumberPerGpu")),
        use_active_gpu=active if isinstance(active, bool) else None,
        python=_text(section, "python") or "python3",
        python_path=_text(section, "pythonPath"),
        setup_lines=tuple(map(str, lines)) if isinstance(lines, list | tuple) else (),
        poll_interval_s=_interval(section.get("pollIntervalSeconds")),
        reuse_mode=section.get("reuseMode") is not False,
    )


def option_problems(section: Mapping[str, object]) -> list[PlatformProblem]:
    """Return which rules a section breaks without a request."""
    options = parse_options(section)
    problems = [
        PlatformProblem(name, "must be given") for name in _REQUIRED if not _text(section, name)
    ]
    problems += _value_problems(section, options)
    return problems + poll_problems(options.poll_interval_s)


def _value_problems(
    section: Mapping[str, object], options: AmlOptions
) -> Iterator[PlatformProblem]:
    if options.subscription and not _SUBSCRIPTION.match(options.subscription):
        rule = "must be the id of a subscription, not its name"
        remedy = "az account list --output table shows the ids"
        yield PlatformProblem("subscriptionId", rule, options.subscription[:80], remedy)
    if _PREDECESSOR.match(options.image):
        rule = "must be an image with the agent of this NNI: msranni/nni has that of NNI 3.0"
        remedy = "derive your image from that of NNI's trial-runner"
        yield PlatformProblem("dockerImage", rule, options.image[:80], remedy)
    if not _ENDPOINT.match(options.endpoint):
        rule = "must be https://host, the Azure Resource Manager of your cloud"
        yield PlatformProblem("endpoint", rule, options.endpoint[:80])
    per_gpu = section.get("maxTrialNumberPerGpu")
    if per_gpu is not None and options.trials_per_gpu is None:
        yield PlatformProblem("maxTrialNumberPerGpu", "must be >= 1", repr(per_gpu)[:80])


def _interval(value: object) -> float:
    """Return a poll interval in seconds; the default if the value is no number, or far too big."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return POLL_S
    return float(value) if abs(value) <= _MOST_POLL_S else POLL_S  # NaN is not, either


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Numbers come as doubles.
    return int(value) if 1 <= value <= _MOST_POLL_S and value == int(value) else None


def _text(section: Mapping[str, object], name: str) -> str:
    value = section.get(name)
    return value.strip() if isinstance(value, str) else ""
