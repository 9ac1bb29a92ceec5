"""Platform `frameworkcontroller`: agents as Frameworks of FrameworkController.

In reuse mode, the default, a Framework has one task, which is an agent. Otherwise it has the task
roles of the section, and task 0 of the first one is an agent for one trial; the other tasks run the
commands of their roles. With a template, the Framework is the one of the template, with the agent
in task 0 of its first role.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from shlex import join
from typing import Any, Final, TypeGuard

from svc_trial_runner.fleet.adapters.kubernetes.adapter import KubernetesAdapter
from svc_trial_runner.fleet.adapters.kubernetes.manifests import (
    AGENT_LABEL,
    ROLE_LABEL,
    SETTINGS_FILE,
    SETTINGS_NAME,
    RoleCommand,
    agent_template,
    merged,
    object_metadata,
    role_template,
)
from svc_trial_runner.fleet.adapters.kubernetes.options import (
    MARGIN_S,
    KubernetesOptions,
    given_options,
)
from svc_trial_runner.fleet.adapters.kubernetes.workloads import (
    FAILED,
    Workload,
    WorkloadEnd,
    WorkloadKind,
)
from svc_trial_runner.fleet.adapters.operators.sections import (
    PodRole,
    base_options,
    base_problems,
    parse_role,
    pod_problems,
    role_options,
    role_problems,
)
from svc_trial_runner.fleet.domain.agents import AgentName, AgentOrder, PlatformProblem
from svc_trial_runner.fleet.domain.section_values import whole_number
from svc_trial_runner.fleet.ports import AdapterContext, PlatformAdapter

FRAMEWORKS: Final = WorkloadKind(
    "frameworkcontroller.microsoft.com",
    "v1",
    "Framework",
    "frameworks",
    propagation="Foreground",  # else pods may outlast their Framework
    operator="FrameworkController",
)
INDEX: Final = "FC_TASK_INDEX"
"""Variable of containers and annotation of pods with the number of a task in its role."""
RUN_TASK: Final = f"""\
if [ "${{{INDEX}:-0}}" != 0 ]; then rm -f "$1"; exec /bin/sh -c "$2"; fi
shift 2
if command -v tini >/dev/null 2>&1; then exec tini -- "$@"; fi
exec "$@"
"""
"""Script of the first role, whose tasks share a template: the agent is in task 0 alone."""
_LIMITS: Final = ("minFailedTaskCount", "minSucceededTaskCount")
_OTHER_SPELLING: Final = {"minSucceededTaskCount": "minSucceedTaskCount"}
_NO_RETRY: Final = {"fancyRetryPolicy": False, "maxRetryCount": 0}
"""The fleet launches another agent instead."""
_HASH: Final = 12
"""Hexadecimal digits of the hash of a pool's name."""
_AGENT_ROLE: Final = PodRole("taskRoles[0]", "worker", 1, "", "", "", "", None)


def frameworkcontroller_adapter(context: AdapterContext) -> PlatformAdapter:
    """Return the adapter of the platform `frameworkcontroller`."""
    return KubernetesAdapter(context, FrameworkWorkload(given_options(context.section)))


class FrameworkWorkload(Workload):
    """`Workload` of Frameworks of FrameworkController: rules, an agent's manifest, its end.

    Args:
        section: options of the platform, as they are written.
    """

    platform = "frameworkcontroller"
    kind = FRAMEWORKS

    def __init__(self, section: Mapping[str, object]) -> None:
        self._section = dict(section)
        account = self._section.get("serviceAccountName")
        if account is not None:
            self._section.setdefault("serviceAccount", account)
        given = _mappings(section.get("taskRoles"))
        self._given = given
        self._roles = [
            parse_role(f"taskRoles[{index}]", role, "taskNumber")
            for index, role in enumerate(given)
        ]
        template = section.get("framework")
        self._template = template if isinstance(template, Mapping) else None
        self._base = base_options(self._section)
        self._first = self._roles[0] if self._roles else _AGENT_ROLE
        self.options = role_options(self._base, self._first)

    def problems(self) -> list[PlatformProblem]:
        """Return problems of the section's options; see `Workload`."""
        problems = [*base_problems(self._section), *self._own_problems()]
        return problems or pod_problems(self.options, self._first)

    def _own_problems(self) -> Iterator[PlatformProblem]:
        if self._template is not None:
            yield from _template_problems(self._template)
        elif not self._roles:
            yield PlatformProblem("taskRoles", "must be given, or configPath")
        names = [role.name for role in self._roles]
        for index, role in enumerate(self._given):
            field = f"taskRoles[{index}]"
            yield from role_problems(field, role, "taskNumber")
            name = role.get("name")
            if name is not None and not _is_name(name):
                rule = "must be lower-case letters and digits, at most 63"
                yield PlatformProblem(f"{field}.name", rule, repr(name)[:80])
            elif names.count(names[index]) > 1:
                yield PlatformProblem(f"{field}.name", "must not be given twice", names[index])
        if not self.options.reuse_mode and self._template is None:
            yield from (
                PlatformProblem(f"{role.field}.command", "must be given with reuseMode: false")
                for index, role in enumerate(self._roles)
                if (index or role.count > 1) and not role.command.strip()
            )

    def object_name(self, agent: AgentName) -> str:
        """Return the name of a Framework, which has letters and digits only."""
        pool = sha256(agent.pool.encode()).hexdigest()[:_HASH]
        return f"nni{agent.installation}{pool}n{agent.number}"

    def is_agent_pod(self, pod: Mapping[str, Any]) -> bool:
        """Return whether a pod is task 0 of the agent's role; see `Workload`."""
        metadata = pod.get("metadata", {})
        index = (metadata.get("annotations") or {}).get(INDEX)
        index = (metadata.get("labels") or {}).get(INDEX) if index is None else index
        return super().is_agent_pod(pod) and str(index or 0) == "0"

    def manifest(
        self, order: AgentOrder, pool_labels: Mapping[str, str], version: str
    ) -> dict[str, Any]:
        """Return the Framework of an agent; see `Workload`."""
        metadata = object_metadata(self.options, order, pool_labels, self.object_name(order.name))
        agent = agent_template(self.options, order, pool_labels, version)
        if self._template is not None:
            spec = self._templated(agent, order, pool_labels)
        else:
            roles = list(self._task_roles(agent, order, pool_labels, version))
            spec = {"taskRoles": roles}
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": metadata,
            "spec": {
                **spec,
                "executionType": "Start",
                "retryPolicy": _NO_RETRY,
            },
        }

    def _task_roles(
        self,
        agent: dict[str, Any],
        order: AgentOrder,
        pool_labels: Mapping[str, str],
        version: str,
    ) -> Iterator[dict[str, Any]]:
        first = self._first
        if self.options.reuse_mode:
            yield _task_role(_role_name(first, 0), 1, {}, agent, self.options)
            return
        if first.count > 1:
            _share_template(agent, self.options.container, first.command)
        policy = _policy(self._given[0])
        yield _task_role(_role_name(first, 0), first.count, policy, agent, self.options)
        for index, role in enumerate(self._roles[1:], 1):
            name = _role_name(role, index)
            command = RoleCommand(name, role.command)
            options = role_options(self._base, role)
            template = role_template(options, order, pool_labels, version, command)
            yield _task_role(name, role.count, _policy(self._given[index]), template, options)

    def _templated(
        self, agent: dict[str, Any], order: AgentOrder, pool_labels: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the spec of the template with the agent in its first role.

        Its other roles stay as they are, with the labels by which their pods are found.
        """
        assert self._template is not None
        spec = dict(self._template["spec"])
        first, *others = (dict(role) for role in spec["taskRoles"])
        task = dict(first.get("task") or {})
        pod = _with_agent(task.get("pod") or {}, agent, self.options.container)
        if int(first.get("taskNumber") or 1) > 1:
            _share_template(pod, self.options.container, _command_of(task.get("pod") or {}))
        first["task"] = {**task, "retryPolicy": _NO_RETRY, "pod": pod}
        roles = [first]
        for role in others:
            labels = {
                **pool_labels, AGENT_LABEL: str(order.name), ROLE_LABEL: str(role.get("name"))
            }  # fmt: skip
            changes = {"task": {"pod": {"metadata": {"labels": labels}}}}
            roles.append(merged(role, changes))
        if self.options.reuse_mode:
            roles = [{**first, "taskNumber": 1}]
        return {**spec, "taskRoles": roles}

    def end(self, item: Mapping[str, Any]) -> WorkloadEnd | None:
        """Return how a Framework has ended, whether failed and why; None: it has not."""
        status = item.get("status") or {}
        if status.get("state") not in {"Completed", "AttemptCompleted"}:
            return None
        completion = (status.get("attemptStatus") or {}).get("completionStatus") or {}
        failed = (completion.get("type") or {}).get("name") == FAILED
        words = f"{completion.get('phrase', '')}: {completion.get('diagnostics', '')}"
        return WorkloadEnd(failed, words.strip(": ") if failed else "")


def _task_role(
    name: str,
    count: int,
    policy: Mapping[str, int],
    template: dict[str, Any],
    options: KubernetesOptions,
) -> dict[str, Any]:
    return {
        "name": name,
        "taskNumber": count,
        "frameworkAttemptCompletionPolicy": {
            "minFailedTaskCount": 1, "minSucceededTaskCount": 1, **policy
        },
        "task": {
            "retryPolicy": _NO_RETRY,
            "podGracefulDeletionTimeoutSec": options.grace_seconds + MARGIN_S,
            "pod": template,
        },
    }  # fmt: skip


def _policy(given: Mapping[str, Any]) -> dict[str, int]:
    """Return a role's completion counts in FrameworkController's spelling, wrong ones left out."""
    policy = given.get("frameworkAttemptCompletionPolicy")
    if not isinstance(policy, Mapping):
        return {}
    given_counts = {
        name: policy.get(name, policy.get(_OTHER_SPELLING.get(name, ""))) for name in _LIMITS
    }
    found = {name: _limit(value) for name, value in given_counts.items()}
    return {name: value for name, value in found.items() if value is not None}


def _limit(value: object) -> int | None:
    """Return a number of tasks, or -1; None: it is neither."""
    return -1 if value == -1 else whole_number(value)


def _share_template(template: dict[str, Any], container: str, command: str) -> None:
    """Make the role's tasks other than the first run a command, in place."""
    for one in template["spec"]["containers"]:
        if one["name"] == container:
            own = one["command"][one["command"].index("agent") + 1 :]
            script = ["/bin/sh", "-c", RUN_TASK, "agent", SETTINGS_FILE, command, *own]
            one["command"] = script


def _with_agent(pod: Mapping[str, Any], agent: Mapping[str, Any], container: str) -> dict[str, Any]:
    """Return a template's pod, changed so that its first container runs the agent."""
    spec = dict(pod.get("spec") or {})
    containers: list[dict[str, Any]] = [dict(one) for one in spec.get("containers") or ()]
    containers[0]["name"] = container
    for name in ("command", "args", "workingDir"):
        containers[0].pop(name, None)
    own_spec = dict(agent["spec"])
    given = {key: value for key, value in containers[0].items() if value not in (None, {}, [])}
    own = next(one for one in own_spec["containers"] if one["name"] == container)
    first = merged(own, given)
    rest = {**own_spec, "containers": [first]}
    others = {**spec, "containers": containers[1:]}
    changed = {"restartPolicy": "Never"}
    found = merged(
        merged({"metadata": pod.get("metadata") or {}}, {"metadata": agent["metadata"]}),
        {"spec": {**merged(rest, others), **changed}},
    )
    # The first container of the agent needs the image of the template, which has the agent.
    if given.get("image"):
        for one in found["spec"]["initContainers"]:
            if one.get("name") == SETTINGS_NAME:
                one["image"] = given["image"]
    return found


def _command_of(pod: Mapping[str, Any]) -> str:
    """Return the command of the first container of a pod as a line of the shell."""
    first: Mapping[str, Any] = next(iter((pod.get("spec") or {}).get("containers") or ()), {})
    return join([*map(str, first.get("command") or ()), *map(str, first.get("args") or ())])


def _template_problems(template: Mapping[str, Any]) -> Iterator[PlatformProblem]:
    if template.get("kind") not in (None, "Framework"):
        yield PlatformProblem("configPath", "must be a Framework", repr(template["kind"])[:80])
    roles = _inner(template, "spec", "taskRoles")
    if not _are_mappings(roles):
        yield PlatformProblem("configPath", "must have spec.taskRoles, a list of mappings")
        return
    for index, role in enumerate(roles):
        place = f"spec.taskRoles[{index}]"
        pod = f"{place}.task.pod.spec"
        if not _are_mappings(_inner(role, "task", "pod", "spec", "containers")):
            rule = f"must have {pod}.containers, a list of mappings"
            yield PlatformProblem("configPath", rule)
        elif not isinstance(_inner(role, "task", "pod", "spec", "initContainers"), list | None):
            yield PlatformProblem("configPath", f"must have {pod}.initContainers as a list")
        number = role.get("taskNumber")
        if number is not None and not whole_number(number):
            rule = f"must have {place}.taskNumber as a whole number of at least 1"
            yield PlatformProblem("configPath", rule, repr(number)[:80])


def _inner(value: object, *names: str) -> object:
    """Return the value in nested mappings at a path of names; None: there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _are_mappings(value: object) -> TypeGuard[Sequence[Mapping[str, Any]]]:
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(isinstance(one, Mapping) for one in value)


def _mappings(value: object) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list | tuple):
        return ()
    return [one for one in value if isinstance(one, Mapping)]


def _role_name(role: PodRole, index: int) -> str:
    """Return the name of a task role; one that has none is numbered."""
    return role.name if _is_name(role.name) else f"role{index}"


def _is_name(name: object) -> bool:
    lower = isinstance(name, str) and name.isascii() and name.isalnum() and name == name.lower()
    return lower and len(str(name)) <= 63  # noqa: PLR2004 - of FrameworkController
