"""Check of a section against Azure: login, workspace, compute target, storage."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from svc_trial_runner.fleet.adapters.aml.azure_requests import AmlRefusalError, LoginError, mapping
from svc_trial_runner.fleet.adapters.aml.jobs import CLUSTER, COMPUTE_TYPES
from svc_trial_runner.fleet.adapters.aml.options import AmlOptions
from svc_trial_runner.fleet.adapters.aml.settings_blobs import SettingsBlobs
from svc_trial_runner.fleet.adapters.aml.workspace_api import WorkspaceApi
from svc_trial_runner.fleet.adapters.http_requests import NOT_FOUND
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.ports import PlatformError

_SUBSCRIPTION_CODES: Final = frozenset({"SubscriptionNotFound", "InvalidSubscriptionId"})
_GROUP_CODES: Final = frozenset({"ResourceGroupNotFound"})


def workspace_problem(
    options: AmlOptions, api: WorkspaceApi, open_blobs: Callable[[], SettingsBlobs]
) -> PlatformProblem | None:
    """Return the first problem that Azure has with a section; None: there is none. Blocks.

    Args:
        options: of the section.
        api: of the workspace.
        open_blobs: returns the settings in the default datastore.
    """
    try:
        api.check_workspace()
    except PlatformError as error:
        return _workspace_problem(options, error)
    try:
        compute = api.compute()
    except AmlRefusalError as error:
        rule = str(error)
        if error.status == NOT_FOUND:
            rule = f"must be a compute target of the workspace {options.workspace}"
        return _problem("computeTarget", rule, options.compute, error)
    except PlatformError as error:
        return _problem("endpoint", str(error), options.endpoint, error)
    rule = _compute_rule(compute)
    if rule:
        return PlatformProblem("computeTarget", rule, options.compute)
    try:
        open_blobs().check()
    except PlatformError as error:
        return _problem(
            "workspaceName", f"has no usable storage: {error}", options.workspace, error
        )
    return None


def _workspace_problem(options: AmlOptions, error: PlatformError) -> PlatformProblem:
    if isinstance(error, LoginError):
        rule = f"needs a login to Azure: {error}"
        return _problem("subscriptionId", rule, options.subscription, error)
    if not isinstance(error, AmlRefusalError):
        return _problem("endpoint", str(error), options.endpoint, error)
    if error.code in _SUBSCRIPTION_CODES:
        rule = f"must be a subscription of your login: {error}"
        return _problem("subscriptionId", rule, options.subscription, error)
    if error.code in _GROUP_CODES:
        rule = "must be a resource group of the subscription"
        return _problem("resourceGroup", rule, options.resource_group, error)
    if error.status == NOT_FOUND:
        rule = f"must be a workspace of the resource group {options.resource_group}"
        return _problem("workspaceName", rule, options.workspace, error)
    return _problem("workspaceName", f"cannot be used: {error}", options.workspace, error)


def _compute_rule(compute: Mapping[str, Any]) -> str:
    """Return why a compute target cannot run agents, as a broken rule; empty: it can."""
    kind = str(compute.get("computeType") or "")
    if kind not in COMPUTE_TYPES:
        return f"must be one of {', '.join(COMPUTE_TYPES)}, and is of type {kind or 'unknown'}"
    if compute.get("provisioningState") == "Failed":
        return "must be ready, and its provisioning has failed: see its page in the studio"
    scale = mapping(mapping(compute.get("properties")).get("scaleSettings"))
    if kind == CLUSTER and scale.get("maxNodeCount") == 0:
        return "must be a cluster that may have nodes, and its maximum is 0"
    return ""


def _problem(field: str, rule: str, value: str, error: PlatformError) -> PlatformProblem:
    return PlatformProblem(field, rule, value, error.remedy, permanent=error.permanent)
