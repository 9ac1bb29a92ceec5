"""Checks of a section against its cluster, before anything is started."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from svc_trial_runner.fleet.adapters.kubernetes.api import KubernetesApi
from svc_trial_runner.fleet.adapters.kubernetes.causes import (
    FORBIDDEN,
    NOT_FOUND,
    KubernetesRefusalError,
    refused_object,
)
from svc_trial_runner.fleet.adapters.kubernetes.options import KubernetesOptions
from svc_trial_runner.fleet.adapters.kubernetes.quantities import parse_quantity
from svc_trial_runner.fleet.adapters.kubernetes.workloads import JOBS, WorkloadKind
from svc_trial_runner.fleet.domain.agents import PlatformProblem

OBJECT_RIGHTS: Final = ("create", "delete", "deletecollection", "list")
"""Verbs of Jobs, or of the objects of an operator, that the adapter uses."""
RIGHTS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("", "pods", ("list", "watch")),
    ("", "secrets", ("create", "delete", "deletecollection", "list", "patch")),
    ("", "events", ("list",)),
)
"""API group, resource and verbs that it uses besides; docs/platforms/kubernetes.md lists them."""
_Found = TypeVar("_Found")
_STORAGE_OBJECTS: Final = (
    ("azureFile", "secretName", "secretName", "secrets", "Secret of the namespace"),
    ("persistentVolumeClaim", "claimName", "claimName", "persistentvolumeclaims",
     "claim of the namespace"),
)  # fmt: skip
"""Volumes of `storage` that name an object: source, its field, that of the section, and kind."""
_KUEUE: Final = "/apis/kueue.x-k8s.io"
_QUOTA_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "cpus": ("requests.cpu", "cpu", "limits.cpu"),
    "memory": ("requests.memory", "memory", "limits.memory"),
    "ephemeralStorage": ("requests.ephemeral-storage", "limits.ephemeral-storage"),
}
"""Names in quotas of what an option asks for."""


def cluster_problems(
    api: KubernetesApi,
    options: KubernetesOptions,
    given: Mapping[str, object],
    job: dict[str, Any],
    kind: WorkloadKind = JOBS,
) -> list[PlatformProblem]:
    """Return the problems that a cluster has with a section; start nothing. Blocks.

    Args:
        api: of the cluster.
        options: of the section.
        given: options as they were written, for the values in messages.
        job: of an agent of this section, which is offered to the server without effect.
        kind: of that object.

    Raises:
        PlatformError: the cluster cannot be reached.
        KubernetesRefusalError: the server refuses a question.
    """
    namespace = api.connect()
    api.request("GET", "/version")
    missing = _missing_namespace(api, namespace)
    if missing is None and kind.operator:
        missing = _missing_operator(api, kind)
    if missing:
        return [missing]
    denied = list(_missing_rights(api, namespace, kind))
    if denied:
        return denied
    problems = [*_missing_objects(api, options), *_queue_problems(api, options)]
    quotas = _found(lambda: api.list("/api/v1/namespaces/{namespace}/resourcequotas")[0]) or []
    problems += broken_quotas(options, quotas)
    return problems or _dry_run(api, given, job, kind)


def _missing_namespace(api: KubernetesApi, namespace: str) -> PlatformProblem | None:
    try:
        api.request("GET", "/api/v1/namespaces/{namespace}")
    except KubernetesRefusalError as error:
        if error.refusal.status == NOT_FOUND:
            remedy = f"kubectl create namespace {namespace}, or choose another one"
            rule = "must be a namespace of the cluster"
            return PlatformProblem("namespace", rule, namespace, remedy)
        if error.refusal.status != FORBIDDEN:  # users of a namespace may not be allowed to get it
            raise
    return None


def _missing_operator(api: KubernetesApi, kind: WorkloadKind) -> PlatformProblem | None:
    """Return a problem if the cluster does not have the kind of object."""
    found = _found(lambda: api.request("GET", f"/apis/{kind.api_version}"))
    names = [one.get("name") for one in (found or {}).get("resources") or ()]
    if kind.plural in names:
        return None
    return PlatformProblem(
        "platform",
        f"needs {kind.operator} in the cluster, which has no {kind.plural}.{kind.group}",
        kind.version,
        f"install {kind.operator}, or use the platform kubernetes, which needs no operator",
        permanent=False,
    )


def _missing_rights(
    api: KubernetesApi, namespace: str, kind: WorkloadKind
) -> Iterator[PlatformProblem]:
    for group, resource, verbs in ((kind.group, kind.plural, OBJECT_RIGHTS), *RIGHTS):
        denied = [verb for verb in verbs if not _may(api, namespace, group, resource, verb)]
        if denied:
            yield PlatformProblem(
                "namespace",
                f"must be one in which you may {', '.join(denied)} {resource}",
                namespace,
                "docs/platforms/kubernetes.md has a Role with the rights that NNI needs",
                permanent=False,
            )


def _may(api: KubernetesApi, namespace: str, group: str, resource: str, verb: str) -> bool:
    attributes = {"namespace": namespace, "group": group, "resource": resource, "verb": verb}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(api.request("POST", path, review).get("status", {}).get("allowed"))


def _missing_objects(api: KubernetesApi, options: KubernetesOptions) -> Iterator[PlatformProblem]:
    """Yield a problem for each named object that the cluster lacks; skip those one may not see."""
    core = "/api/v1/namespaces/{namespace}"
    wanted = [
        *((f"secrets[{i}].name", f"{core}/secrets", str(one["name"]), "Secret of the namespace")
          for i, one in enumerate(options.secrets)),
        *((f"imagePullSecrets[{i}]", f"{core}/secrets", one, "Secret of the namespace")
          for i, one in enumerate(options.image_pull_secrets)),
        *((f"volumes[{i}].persistentVolumeClaim.claimName", f"{core}/persistentvolumeclaims",
           str(one["persistentVolumeClaim"].get("claimName", "")), "claim of the namespace")
          for i, one in enumerate(options.volumes) if "persistentVolumeClaim" in one),
        *((f"volumes[{i}].configMap.name", f"{core}/configmaps",
           str(one["configMap"].get("name", "")), "ConfigMap of the namespace")
          for i, one in enumerate(options.volumes) if "configMap" in one),
        *((f"storage.{field}", f"{core}/{resource}", str(volume[source][name]), kind)
          for source, name, field, resource, kind in _STORAGE_OBJECTS
          for volume, _ in options.more_volumes if source in volume),
        ("serviceAccount", f"{core}/serviceaccounts", options.service_account,
         "service account of the namespace"),
        ("priorityClass", "/apis/scheduling.k8s.io/v1/priorityclasses", options.priority_class,
         "priority class of the cluster"),
    ]  # fmt: skip
    for field, path, name, kind in wanted:
        if name and _is_missing(api, f"{path}/{name}"):
            yield PlatformProblem(field, f"must be a {kind}", name)


def _is_missing(api: KubernetesApi, path: str) -> bool:
    try:
        api.request("GET", path)
    except KubernetesRefusalError as error:
        if error.refusal.status == NOT_FOUND:
            return True
        if error.refusal.status != FORBIDDEN:
            raise
    return False


def _queue_problems(api: KubernetesApi, options: KubernetesOptions) -> Iterator[PlatformProblem]:
    if not options.queue:
        return
    group = _found(lambda: api.request("GET", _KUEUE))
    if group is None:
        rule = "must not be given: the cluster has no Kueue"
        yield PlatformProblem("queue", rule, options.queue, "install Kueue, or leave queue out")
        return
    version = group.get("preferredVersion", {}).get("version", "v1beta1")
    path = f"{_KUEUE}/{version}/namespaces/{{namespace}}/localqueues/{options.queue}"
    if _is_missing(api, path):
        rule = "must be a LocalQueue of the namespace"
        yield PlatformProblem("queue", rule, options.queue, "kubectl get localqueues lists them")


def _found(ask: Callable[[], _Found]) -> _Found | None:
    """Call the API; return its answer; None: not found (404) or forbidden (403)."""
    try:
        return ask()
    except KubernetesRefusalError as error:
        if error.refusal.status not in {NOT_FOUND, FORBIDDEN}:
            raise
        return None


def broken_quotas(
    options: KubernetesOptions, quotas: Sequence[Mapping[str, Any]]
) -> list[PlatformProblem]:
    """Return problems: resource requests over a quota, or missing though a quota requires them.

    Args:
        options: of the section.
        quotas: resource quotas of the namespace.
    """
    asked = {
        "cpus": options.cpus,
        "memory": options.memory,
        "ephemeralStorage": options.ephemeral_storage,
        "gpus": str(options.gpus or ""),
    }
    gpu_names = (f"requests.{options.gpu_resource}", options.gpu_resource)
    names = {**_QUOTA_NAMES, "gpus": gpu_names}
    problems = []
    for quota in quotas:
        if quota.get("spec", {}).get("scopes") or quota.get("spec", {}).get("scopeSelector"):
            continue  # whether it is about these pods only the server knows
        hard = quota.get("spec", {}).get("hard", {})
        for field, value in asked.items():
            for name in names[field]:
                problem = _over(field, value, str(hard.get(name, "")), quota)
                problems += [problem] if problem else []
    return problems


def _over(field: str, value: str, limit: str, quota: Mapping[str, Any]) -> PlatformProblem | None:
    if not limit:
        return None
    most = parse_quantity(limit)
    asked = parse_quantity(value) if value else None
    name = quota.get("metadata", {}).get("name", "")
    if most is None or (asked is None and field == "gpus"):
        return None
    if asked is None:
        return PlatformProblem(field, f"must be given: the quota {name} of the namespace asks so")
    if asked > most:
        return PlatformProblem(field, f"must be <= {limit}, as the quota {name} allows", value)
    return None


def _dry_run(
    api: KubernetesApi, given: Mapping[str, object], job: dict[str, Any], kind: WorkloadKind
) -> list[PlatformProblem]:
    """Submit a job as a dry run; return the server's refusal as a problem; empty: none."""
    try:
        api.request("POST", kind.path, job, {"dryRun": "All"})
    except KubernetesRefusalError as error:
        return [refused_object(error.refusal, given)]
    return []
