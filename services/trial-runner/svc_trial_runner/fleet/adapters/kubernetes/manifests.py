"""Objects of Kubernetes that an agent is made of: its job, and the secret with its settings."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from svc_trial_runner.fleet.adapters.agent_image import default_image
from svc_trial_runner.fleet.adapters.kubernetes.options import RESTRICTED, KubernetesOptions
from svc_trial_runner.fleet.domain.agents import AgentName, AgentOrder

INSTALLATION_LABEL: Final = "nni-installation"
POOL_LABEL: Final = "nni-pool"
PLATFORM_LABEL: Final = "nni-platform"
AGENT_LABEL: Final = "nni-agent"
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
ROLE_LABEL: Final = "nni-role"
AGENT_ROLE: Final = "agent"
"""Value of that label of the pod in which the agent runs; other pods have that of their role."""
SETTINGS_NAME: Final = "settings"
"""Name of the first container, which copies the settings."""
SETTINGS_KEY: Final = "settings.json"
HOME_PATH: Final = "/nni/home"
"""Home of the container's user: folder of the agent and of its trials."""
SETTINGS_PATH: Final = "/nni/settings"
"""Folder in memory from which the agent reads and removes its settings."""
SETTINGS_FILE: Final = f"{SETTINGS_PATH}/{SETTINGS_KEY}"
SECRET_PATH: Final = "/nni/secret"  # noqa: S105 - a path
"""The mounted secret; only the first container has it, so that no trial can read it."""

_OWN_MOUNTS: Final = (
    {"name": "nni-home", "mountPath": HOME_PATH},
    {"name": "nni-settings", "mountPath": SETTINGS_PATH},
)
COPY_SETTINGS: Final = 'umask 077 && cat "$1" >"$2" && mkdir -p "$3"'
"""Script of the first container. A mounted secret cannot be removed and belongs to root."""
RUN_AGENT: Final = """\
if command -v tini >/dev/null 2>&1; then exec tini -- "$@"; fi
exec "$@"
"""
"""Script of the agent's container: process 1 has to reap what trials leave behind."""


@dataclass(frozen=True, slots=True)
class RoleCommand:
    """Name and shell command of a role whose pods have no agent."""

    name: str
    command: str
    """Line of the shell."""


def labels_of_pool(installation: str, pool: str, key: str) -> dict[str, str]:
    """Return the labels that all objects of a platform of a pool have and by which they are found.

    Args:
        installation: of the pool.
        pool: whose agents these are.
        key: of the platform in its pool: two of them may share a namespace.
    """
    return {
        **labels_of_installation(installation),
        POOL_LABEL: pool,
        PLATFORM_LABEL: key,
    }


def labels_of_installation(installation: str) -> dict[str, str]:
    """Return the labels of all objects of an installation, of whatever pool."""
    return {"app.kubernetes.io/managed-by": "nni", INSTALLATION_LABEL: installation}


def selector(labels: Mapping[str, str]) -> str:
    """Return labels as a selector of lists."""
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def secret_manifest(
    name: AgentName, pool_labels: Mapping[str, str], settings: bytes
) -> dict[str, Any]:
    """Return the secret with the settings of an agent, which has its name."""
    labels = {**pool_labels, AGENT_LABEL: str(name)}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": str(name), "labels": labels},
        "type": "Opaque",
        "immutable": True,
        "data": {SETTINGS_KEY: base64.b64encode(settings).decode("ascii")},
    }


def owner_patch(
    job: Mapping[str, Any], api_version: str = "batch/v1", kind: str = "Job"
) -> dict[str, Any]:
    """Return the patch that makes an agent's object own its secret, so that both are removed."""
    reference = {
        "apiVersion": api_version,
        "kind": kind,
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
    }
    return {"metadata": {"ownerReferences": [reference]}}


def job_manifest(
    options: KubernetesOptions, order: AgentOrder, pool_labels: Mapping[str, str], version: str
) -> dict[str, Any]:
    """Return the Job manifest of an agent, named after it: one pod, no retry, queue if given.

    Args:
        options: of the section.
        order: of the agent.
        pool_labels: see `labels_of_pool`.
        version: of NNI, the tag of the image if none is given.
    """
    spec: dict[str, Any] = {
        "backoffLimit": 0,
        "completions": 1,
        "parallelism": 1,
        "ttlSecondsAfterFinished": options.ttl_seconds_after_finished,
        "template": agent_template(options, order, pool_labels, version),
    }
    if options.queue:
        spec["suspend"] = True  # Kueue starts it
    metadata = object_metadata(options, order, pool_labels, str(order.name))
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def object_metadata(
    options: KubernetesOptions, order: AgentOrder, pool_labels: Mapping[str, str], name: str
) -> dict[str, Any]:
    """Return the metadata of an agent's object, in the queue of its section."""
    labels = {**options.labels, **pool_labels, AGENT_LABEL: str(order.name)}
    if options.queue:
        labels[QUEUE_LABEL] = options.queue
    return {"name": name, "labels": labels, "annotations": dict(options.annotations)}


def agent_template(
    options: KubernetesOptions, order: AgentOrder, pool_labels: Mapping[str, str], version: str
) -> dict[str, Any]:
    """Return the pod template of an agent, its `podTemplate` merged in; see `job_manifest`."""
    template = merged(
        {
            "metadata": {"labels": {}, "annotations": dict(options.annotations)},
            "spec": _pod_spec(options, order, version),
        },
        options.pod_template,
    )
    own = {AGENT_LABEL: str(order.name)}
    template["metadata"]["labels"] |= {**options.labels, **pool_labels, **own}
    return template


def role_template(
    options: KubernetesOptions,
    order: AgentOrder,
    pool_labels: Mapping[str, str],
    version: str,
    role: RoleCommand,
) -> dict[str, Any]:
    """Return the template of a pod that works beside the one of the agent, without its settings.

    Args:
        options: of the role's pods.
        order: of the agent.
        pool_labels: see `labels_of_pool`.
        version: of NNI, the tag of the image if none is given.
        role: whose command the pod runs.
    """
    template = agent_template(options, order, pool_labels, version)
    template["metadata"]["labels"][ROLE_LABEL] = role.name
    spec = template["spec"]
    spec["initContainers"] = [
        one for one in spec["initContainers"] if one.get("name") != SETTINGS_NAME
    ]
    settings = {"nni-secret", "nni-settings"}
    spec["volumes"] = [one for one in spec["volumes"] if one.get("name") not in settings]
    for container in spec["containers"]:
        if container["name"] == options.container:
            mounts = container["volumeMounts"]
            container["volumeMounts"] = [one for one in mounts if one["name"] not in settings]
            container["command"] = ["/bin/sh", "-c", role.command]
    return template


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a deep merge of changes into an object: mappings by key, list items by `name`.

    Items without a name, as in `tolerations`, are appended.
    """
    result = dict(base)
    for key, change in changes.items():
        before = result.get(key)
        if isinstance(before, Mapping) and isinstance(change, Mapping):
            result[key] = merged(before, change)
        elif isinstance(before, list) and isinstance(change, list):
            result[key] = _merged_items(before, change)
        else:
            result[key] = change
    return result


def _merged_items(before: list[Any], changes: list[Any]) -> list[Any]:
    result = list(before)
    for change in changes:
        name = change.get("name") if isinstance(change, Mapping) else None
        places = [
            index
            for index, item in enumerate(result)
            if name and isinstance(item, Mapping) and item.get("name") == name
        ]
        if places:
            result[places[0]] = merged(result[places[0]], change)
        else:
            result.append(change)
    return result


def _pod_spec(options: KubernetesOptions, order: AgentOrder, version: str) -> dict[str, Any]:
    volumes, mounts = _volumes(options)
    own = [
        {"name": "nni-home", "emptyDir": {}},
        {"name": "nni-settings", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "nni-secret", "secret": {"secretName": str(order.name), "defaultMode": 0o400}},
    ]
    more = [dict(volume) for volume, _ in options.more_volumes]
    mounts = [*mounts, *(dict(mount) for _, mount in options.more_volumes)]
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": options.grace_seconds,
        "initContainers": [_first_container(options, order, version)],
        "containers": [_agent_container(options, order, version, mounts)],
        "volumes": [*own, *volumes, *more],
        **_pod_security(options),
        **_scheduling(options),
    }


def _first_container(options: KubernetesOptions, order: AgentOrder, version: str) -> dict[str, Any]:
    """Return the init container, which alone mounts the secret and copies the settings from it."""
    # A quota of a namespace may ask for requests and limits of each container.
    resources = {
        kind: {name: each for name, each in amounts.items() if name in {"cpu", "memory"}}
        for kind, amounts in _resources(options, order).items()
    }
    secret = {"name": "nni-secret", "mountPath": SECRET_PATH, "readOnly": True}
    return {
        **_container(options, version),
        "name": SETTINGS_NAME,
        "volumeMounts": [*_OWN_MOUNTS, secret],
        "command": [
            "/bin/sh", "-c", COPY_SETTINGS, "settings",
            f"{SECRET_PATH}/{SETTINGS_KEY}", SETTINGS_FILE, f"{HOME_PATH}/agent",
        ],
        "resources": resources,
    }  # fmt: skip


def _agent_container(
    options: KubernetesOptions, order: AgentOrder, version: str, mounts: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the container of agent and trials."""
    common = _container(options, version)
    return {
        **common,
        "name": options.container,
        "volumeMounts": [*_OWN_MOUNTS, *mounts],
        "command": [
            "/bin/sh", "-c", RUN_AGENT, "agent",
            options.python, "-P", "-m", "svc_trial_runner",
            "--settings", SETTINGS_FILE,
        ],
        "resources": _resources(options, order),
        "env": [*common["env"], *_variables(options)],
        "envFrom": [
            {"secretRef": {"name": one["name"]}}
            for one in options.secrets
            if "env" not in one and "mountPath" not in one
        ],
    }  # fmt: skip


def _container(options: KubernetesOptions, version: str) -> dict[str, Any]:
    container: dict[str, Any] = {
        "image": image_of(options, version),
        "env": [{"name": "HOME", "value": HOME_PATH}],
        "workingDir": HOME_PATH,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if options.image_pull_policy:
        container["imagePullPolicy"] = options.image_pull_policy
    if options.pod_security == RESTRICTED:
        container["securityContext"] = {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
    return container


def image_of(options: KubernetesOptions, version: str) -> str:
    """Return the image of the agent."""
    return options.image or default_image(version)


def _pod_security(options: KubernetesOptions) -> dict[str, Any]:
    user = options.run_as_user
    context: dict[str, Any] = {
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "fsGroupChangePolicy": "OnRootMismatch",  # else each start walks through the volumes
    }
    if options.pod_security == RESTRICTED:
        context |= {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {"securityContext": context}


def _scheduling(options: KubernetesOptions) -> dict[str, Any]:
    given = {
        "imagePullSecrets": [{"name": name} for name in options.image_pull_secrets],
        "nodeSelector": {name: _label(value) for name, value in options.node_selector.items()},
        "tolerations": [dict(one) for one in options.tolerations],
        "priorityClassName": options.priority_class,
        "serviceAccountName": options.service_account,
    }
    return {name: value for name, value in given.items() if value}


def _label(value: object) -> str:
    """Return the value of a label as it stands in YAML: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _resources(options: KubernetesOptions, order: AgentOrder) -> dict[str, dict[str, str]]:
    gpus = options.gpus
    if gpus is None:
        gpus = (order.gpus_per_trial or 0) * (order.slots if options.reuse_mode else 1)
    amounts = {
        "cpu": options.cpus,
        "memory": options.memory,
        "ephemeral-storage": options.ephemeral_storage,
        options.gpu_resource: str(gpus or ""),
    }
    given = {name: amount for name, amount in amounts.items() if amount}
    return {"requests": given, "limits": dict(given)} if given else {}


def _volumes(options: KubernetesOptions) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the volumes of a pod and where its container mounts them."""
    volumes, mounts = [], []
    for index, one in enumerate(options.volumes):
        name = str(one.get("name") or f"volume-{index}")
        place = {key: one[key] for key in ("mountPath", "readOnly", "subPath") if key in one}
        source = {key: value for key, value in one.items() if key not in {*place, "name"}}
        volumes.append({"name": name, **source})
        mounts.append({"name": name, **place})
    for index, one in enumerate(options.secrets):
        if "mountPath" in one:
            name = f"secret-{index}"
            volumes.append({"name": name, "secret": {"secretName": one["name"]}})
            mounts.append({"name": name, "mountPath": one["mountPath"], "readOnly": True})
    return volumes, mounts


def _variables(options: KubernetesOptions) -> list[dict[str, Any]]:
    return [
        {
            "name": one["env"],
            "valueFrom": {"secretKeyRef": {"name": one["name"], "key": one["key"]}},
        }
        for one in options.secrets
        if "env" in one
    ]
