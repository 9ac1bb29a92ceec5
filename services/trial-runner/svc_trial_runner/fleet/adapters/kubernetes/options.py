"""Options of the section `kubernetes`, read once: values that manifests and checks are made of."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from svc_trial_runner.agent_settings import LEAST_GRACE_S
from svc_trial_runner.fleet.adapters.kubernetes.quantities import parse_quantity
from svc_trial_runner.fleet.domain.agents import PlatformProblem, PlatformSection
from svc_trial_runner.fleet.domain.section_secrets import with_secrets
from svc_trial_runner.fleet.domain.section_values import text_lines

GPU_RESOURCE: Final = "nvidia.com/gpu"
RESTRICTED: Final = "restricted"
UNRESTRICTED: Final = "none"
CONTAINER: Final = "agent"
AGENT_CONTAINERS: Final = frozenset({CONTAINER, "tensorflow", "pytorch"})
"""Names that the agent's container has: operators of Kubeflow ask for theirs."""
GRACE_S: Final = 30
"""Time from TERM to KILL of a pod, so that its trials can be handed over."""
LONGEST_GRACE_S: Final = 120
"""The end of pods is waited for, and a call of the fleet that ends agents takes 150 s at most."""
MARGIN_S: Final = 2
"""Part of that time that is left for the end of the agent's process."""
KEPT_S: Final = 86_400
"""Time after which Kubernetes removes the job of an agent that no fleet has removed."""
USER_ID: Final = 65532
"""User of the agent in its image."""
LEAST_MEMORY_BYTES: Final = 16 * 1024 * 1024
"""A smaller limit is a forgotten unit: `8192` are bytes."""
SOURCES: Final = ("nfs", "persistentVolumeClaim", "hostPath", "emptyDir", "configMap", "secret")
"""Kinds of volumes; others are in `podTemplate`."""
OWN_PATHS: Final = "/nni"
"""Folder of the agent in its container; no volume may be mounted there."""

_PARTS_OF_OBJECTS: Final = ("annotations", "framework", "labels", "nodeSelector", "podTemplate")
"""Options that become parts of objects of Kubernetes as they are written."""
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")
_IMAGE: Final = re.compile(
    r"(?:[a-zA-Z0-9.-]+(?::\d+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
    r"(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?\Z"
)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ONE_LINE: Final = re.compile(r"[^\x00-\x1f\x7f]*\Z")


@dataclass(frozen=True, slots=True)
class KubernetesOptions:
    """Options of one platform `kubernetes`: cluster, image, resources, volumes, scheduling, ..."""

    context: str = ""
    """Of the kubeconfig; empty: its current one."""
    namespace: str = ""
    """Of jobs and secrets; empty: that of the context."""
    kubeconfig: str = ""
    """Empty: `KUBECONFIG`, else `~/.kube/config`."""
    in_cluster: bool | None = None
    """True: the service account of the fleet's pod; None: if there is no kubeconfig."""
    image: str = ""
    """Image with NNI's agent; empty: that of this version."""
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    cpus: str = ""
    memory: str = ""
    ephemeral_storage: str = ""
    """Quantities of Kubernetes, requested and limited alike."""
    gpus: int | None = None
    """None: as many as the trials of an agent ask for."""
    gpu_resource: str = GPU_RESOURCE
    """Name of the resource that a GPU is."""
    volumes: tuple[Mapping[str, Any], ...] = ()
    """Each a volume of Kubernetes with `mountPath`, and optionally `readOnly` and `subPath`."""
    secrets: tuple[Mapping[str, Any], ...] = ()
    """Each with `name` of a Secret, and `mountPath`, or `key` and `env`, or nothing else: all keys
    are variables."""
    node_selector: Mapping[str, Any] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    priority_class: str = ""
    queue: str = ""
    """Local queue of Kueue."""
    service_account: str = ""
    pod_security: str = RESTRICTED
    run_as_user: int = USER_ID
    pod_template: Mapping[str, Any] = field(default_factory=dict)
    """Merged into the template of the pod."""
    labels: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    ttl_seconds_after_finished: int = KEPT_S
    grace_seconds: int = GRACE_S
    python: str = "python3"
    """Interpreter of the agent in the image."""
    python_path: str = ""
    setup_lines: tuple[str, ...] = ()
    reuse_mode: bool = True
    """False: an agent ends after one trial."""
    container: str = CONTAINER
    """Name of the agent's container; operators ask for their own."""
    more_volumes: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...] = ()
    """Volumes and their mounts that are none of the section's `volumes`."""


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return None
    return str(value) if isinstance(value, str | int | float) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _mapping(value: object) -> Mapping[str, Any] | None:
    return dict(value) if isinstance(value, Mapping) else None


def _mappings(value: object) -> tuple[Mapping[str, Any], ...] | None:
    if isinstance(value, list | tuple) and all(isinstance(one, Mapping) for one in value):
        return tuple(dict(one) for one in value)
    return None


_Reader = Callable[[object], object]
_KINDS: Final[Mapping[_Reader, str]] = {
    _text: "text",
    _flag: "true or false",
    _integer: "a whole number of at least 0",
    text_lines: "a list of texts",
    _mapping: "a mapping of names to values",
    _mappings: "a list of mappings",
}
_READERS: Final[Mapping[str, tuple[str, _Reader]]] = {
    "context": ("context", _text),
    "namespace": ("namespace", _text),
    "kubeconfig": ("kubeconfig", _text),
    "inCluster": ("in_cluster", _flag),
    "image": ("image", _text),
    "imagePullPolicy": ("image_pull_policy", _text),
    "imagePullSecrets": ("image_pull_secrets", text_lines),
    "cpus": ("cpus", _text),
    "memory": ("memory", _text),
    "ephemeralStorage": ("ephemeral_storage", _text),
    "gpus": ("gpus", _integer),
    "gpuResource": ("gpu_resource", _text),
    "volumes": ("volumes", _mappings),
    "secrets": ("secrets", _mappings),
    "nodeSelector": ("node_selector", _mapping),
    "tolerations": ("tolerations", _mappings),
    "priorityClass": ("priority_class", _text),
    "queue": ("queue", _text),
    "serviceAccount": ("service_account", _text),
    "podSecurity": ("pod_security", _text),
    "runAsUser": ("run_as_user", _integer),
    "podTemplate": ("pod_template", _mapping),
    "labels": ("labels", _mapping),
    "annotations": ("annotations", _mapping),
    "ttlSecondsAfterFinished": ("ttl_seconds_after_finished", _integer),
    "graceSeconds": ("grace_seconds", _integer),
    "python": ("python", _text),
    "pythonPath": ("python_path", _text),
    "setupLines": ("setup_lines", text_lines),
    "reuseMode": ("reuse_mode", _flag),
}
"""Field and reader by the name in a section; other names, those of all platforms, are ignored."""


def given_options(section: PlatformSection) -> dict[str, object]:
    """Return a section's options with secret values restored in labels, templates and other fields.

    What has the name of a secret was taken out of them: a label `auth` would be missing.
    """
    parts = {
        name: with_secrets(section.options[name], name, section.secrets)
        for name in _PARTS_OF_OBJECTS
        if name in section.options
    }
    return {**section.options, **parts}


def parse_options(options: Mapping[str, object]) -> KubernetesOptions:
    """Return the options of a section; values of a wrong type are as if they were not given.

    `option_problems` reports them.
    """
    read = {
        name: reader(options[key])
        for key, (name, reader) in _READERS.items()
        if options.get(key) is not None
    }
    known = {name: value for name, value in read.items() if value is not None}
    return KubernetesOptions(**known)  # type: ignore[arg-type] # each reader returns its field's type


def option_problems(options: Mapping[str, object]) -> list[PlatformProblem]:
    """Return problems of the section's options, found without contacting the cluster."""
    problems = [
        PlatformProblem(key, f"must be {_KINDS[reader]}", repr(options[key])[:80])
        for key, (_, reader) in _READERS.items()
        if options.get(key) is not None and reader(options[key]) is None
    ]
    parsed = parse_options(options)
    return [*problems, *parsed_problems(parsed)]


def parsed_problems(options: KubernetesOptions) -> list[PlatformProblem]:
    """Return problems of options that have the right types: values and their combinations."""
    return [
        *_name_problems(options),
        *_choice_problems(options),
        *_quantity_problems(options),
        *_volume_problems(options),
        *_secret_problems(options),
        *_template_problems(options),
    ]


def _name_problems(options: KubernetesOptions) -> Iterator[PlatformProblem]:
    named = [
        ("serviceAccount", options.service_account),
        ("priorityClass", options.priority_class),
        ("queue", options.queue),
        *((f"imagePullSecrets[{i}]", one) for i, one in enumerate(options.image_pull_secrets)),
    ]
    if options.namespace and not _LABEL.match(options.namespace):
        rule = "must be lower-case letters, digits and '-' within, at most 63"
        yield PlatformProblem("namespace", rule, options.namespace)
    for name, value in named:
        if value and not _NAME.match(value):
            rule = "must be lower-case letters, digits, '-' and '.' within"
            yield PlatformProblem(name, rule, value)
    if options.image and not _IMAGE.match(options.image):
        rule = "must be the name of an image, such as registry.example.org/team/trials:1"
        yield PlatformProblem("image", rule, options.image)


def _choice_problems(options: KubernetesOptions) -> Iterator[PlatformProblem]:
    policies = ("Always", "IfNotPresent", "Never")
    if options.image_pull_policy and options.image_pull_policy not in policies:
        rule = f"must be one of {', '.join(policies)}"
        yield PlatformProblem("imagePullPolicy", rule, options.image_pull_policy)
    if options.pod_security not in {RESTRICTED, UNRESTRICTED}:
        rule = f"must be {RESTRICTED} or {UNRESTRICTED}"
        yield PlatformProblem("podSecurity", rule, options.pod_security)
    if options.pod_security == RESTRICTED and options.run_as_user == 0:
        remedy = f"choose another user, or podSecurity: {UNRESTRICTED}"
        yield PlatformProblem("runAsUser", "must not be 0, which is root", "0", remedy)
    if not LEAST_GRACE_S + MARGIN_S <= options.grace_seconds <= LONGEST_GRACE_S:
        rule = f"must be >= {LEAST_GRACE_S + MARGIN_S:g} and <= {LONGEST_GRACE_S}"
        yield PlatformProblem("graceSeconds", rule, str(options.grace_seconds))
    if options.in_cluster and (options.context or options.kubeconfig):
        rule = "must not be true with context or kubeconfig"
        yield PlatformProblem("inCluster", rule, "true")
    for name, text in (("python", options.python), ("pythonPath", options.python_path)):
        if not _ONE_LINE.match(text):
            rule = "must be one line without control characters"
            yield PlatformProblem(name, rule, repr(text)[:80])


def _quantity_problems(options: KubernetesOptions) -> Iterator[PlatformProblem]:
    sizes = (("memory", options.memory), ("ephemeralStorage", options.ephemeral_storage))
    for name, value in (("cpus", options.cpus), *sizes):
        amount = parse_quantity(value) if value else None
        if value and not amount:
            rule = "must be a quantity of Kubernetes, such as 2, 500m or 16Gi"
            yield PlatformProblem(name, rule, value)
        elif amount and name != "cpus" and amount < LEAST_MEMORY_BYTES:
            rule = "must be at least 16Mi: a number without unit is bytes, and m are thousandths"
            yield PlatformProblem(name, rule, value, "16Gi are 16 gibibytes")


def _volume_problems(options: KubernetesOptions) -> Iterator[PlatformProblem]:
    paths: set[str] = set()
    for index, volume in enumerate(options.volumes):
        name = f"volumes[{index}]"
        sources = [one for one in SOURCES if one in volume]
        if len(sources) != 1:
            rule = f"must have exactly one of {', '.join(SOURCES)}"
            yield PlatformProblem(name, rule, ", ".join(sources), "others go into podTemplate")
        elif not isinstance(volume[sources[0]], Mapping):
            shown = repr(volume[sources[0]])[:80]
            remedy = "the fields are those of Kubernetes; without any, write {}"
            yield PlatformProblem(f"{name}.{sources[0]}", "must be a mapping", shown, remedy)
        yield from _path_problems(name, volume, paths)
        unknown = sorted(set(volume) - {*SOURCES, "name", "mountPath", "readOnly", "subPath"})
        if unknown:
            yield PlatformProblem(f"{name}.{unknown[0]}", "is not known", "", "is it misspelled?")


def _secret_problems(options: KubernetesOptions) -> Iterator[PlatformProblem]:
    paths: set[str] = set()
    for index, secret in enumerate(options.secrets):
        name = f"secrets[{index}]"
        if not _NAME.match(str(secret.get("name", ""))):
            rule = "must be the name of a Secret of the namespace"
            yield PlatformProblem(f"{name}.name", rule, str(secret.get("name", "")))
        if "mountPath" in secret:
            yield from _path_problems(name, secret, paths)
        if ("env" in secret) != ("key" in secret):
            yield PlatformProblem(name, "must have env and key together, or none of them")
        elif "env" in secret and not _VARIABLE.match(str(secret["env"])):
            rule = "must be the name of a variable"
            yield PlatformProblem(f"{name}.env", rule, str(secret["env"]))
        unknown = sorted(set(secret) - {"name", "key", "env", "mountPath"})
        if unknown:
            # A value beside the name of a Secret would be in the log of the experiment.
            rule = "is not known: values of secrets are in the cluster, not here"
            yield PlatformProblem(f"{name}.{unknown[0]}", rule)


def _path_problems(
    name: str, mount: Mapping[str, Any], paths: set[str]
) -> Iterator[PlatformProblem]:
    path = mount.get("mountPath")
    if not isinstance(path, str) or not path.startswith("/") or ":" in path:
        rule = "must be an absolute path in the container"
        yield PlatformProblem(f"{name}.mountPath", rule, str(path or ""))
    elif path == OWN_PATHS or path.startswith(f"{OWN_PATHS}/"):
        rule = f"must not be in {OWN_PATHS}, which is the agent's"
        yield PlatformProblem(f"{name}.mountPath", rule, path)
    elif path in paths:
        yield PlatformProblem(f"{name}.mountPath", "must not be given twice", path)
    else:
        paths.add(path)


def _template_problems(options: KubernetesOptions) -> Iterator[PlatformProblem]:
    for part in ("metadata", "spec"):
        if not isinstance(options.pod_template.get(part, {}), Mapping):
            yield PlatformProblem(f"podTemplate.{part}", "must be a mapping")
            return
    metadata = options.pod_template.get("metadata", {})
    for part in ("labels", "annotations"):
        if not isinstance(metadata.get(part, {}), Mapping):
            yield PlatformProblem(f"podTemplate.metadata.{part}", "must be a mapping")
    spec = options.pod_template.get("spec", {})
    if "restartPolicy" in spec:
        rule = "must not be given: an agent is not restarted, another one is launched"
        yield PlatformProblem("podTemplate.spec.restartPolicy", rule, str(spec["restartPolicy"]))
    containers = spec.get("containers", ())
    if not isinstance(containers, Sequence) or isinstance(containers, str):
        yield PlatformProblem("podTemplate.spec.containers", "must be a list")
        return
    for index, container in enumerate(containers):
        place = f"podTemplate.spec.containers[{index}]"
        if not isinstance(container, Mapping) or not container.get("name"):
            rule = f"must be a mapping with a name; that of the agent is `{options.container}`"
            yield PlatformProblem(place, rule)
        elif container["name"] == options.container and {"command", "args"} & set(container):
            rule = "must not have command or args: they are the agent's"
            yield PlatformProblem(place, rule, options.container, "use setupLines")
