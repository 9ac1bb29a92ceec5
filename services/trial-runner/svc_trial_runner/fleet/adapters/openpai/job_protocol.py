"""OpenPAI jobs that run agents, as documents of its job protocol, version 2.

The settings of an agent are a secret of the job: OpenPAI hides it from other users, and puts its
value into the commands within the container only.
"""

import base64
from collections.abc import Mapping
from shlex import quote
from typing import Any, Final

from svc_trial_runner.fleet.adapters.agent_image import default_image
from svc_trial_runner.fleet.adapters.openpai.options import PLUGINS, OpenpaiOptions
from svc_trial_runner.fleet.domain.agents import AgentOrder

SETTINGS_SECRET: Final = "nni_settings"  # noqa: S105 - the name of a field
ROLE: Final = "agent"
_IMAGE_NAME: Final = "nni_image"
_STORAGE_PLUGIN: Final = "teamwise_storage"
_FOLDER: Final = '"$HOME/.nni-agent"'


def job_of(
    options: OpenpaiOptions, order: AgentOrder, settings: bytes, version: str
) -> dict[str, Any]:
    """Return an agent's job for OpenPAI: the given one with agent, image, resources, settings.

    A field of the section wins over the one of `openpaiConfig`. The agent runs in the first task
    role; the others run as they are, unless agents are reused.

    Args:
        options: of the section.
        order: of the agent.
        settings: of the agent.
        version: of NNI, the tag of the image if none is given.
    """
    given = options.protocol
    roles = {str(name): dict(role) for name, role in (given.get("taskRoles") or {}).items()}
    first = next(iter(roles), ROLE)
    if options.agent.reuse_mode:
        roles = {first: roles.get(first, {})}
    images = list(given.get("prerequisites") or ())
    roles[first] = _agent_role(options, order, roles.get(first, {}))
    if options.image or "dockerImage" not in roles[first]:
        uri = options.image or default_image(version)
        images.append({"name": _IMAGE_NAME, "type": "dockerimage", "uri": uri})
        roles[first]["dockerImage"] = _IMAGE_NAME
    secret = base64.b64encode(settings).decode("ascii")
    job = {
        **given,
        "protocolVersion": 2,
        "name": str(order.name),
        "type": "job",
        "jobRetryCount": 0,  # the fleet launches another agent instead
        "prerequisites": images,
        "secrets": {**(given.get("secrets") or {}), SETTINGS_SECRET: secret},
        "taskRoles": roles,
        "extras": _extras(options),
    }
    if options.virtual_cluster:
        defaults = given.get("defaults") or {}
        job["defaults"] = {**defaults, "virtualCluster": options.virtual_cluster}
    return job


def _agent_role(
    options: OpenpaiOptions, order: AgentOrder, given: Mapping[str, Any]
) -> dict[str, Any]:
    slots = order.slots if options.agent.reuse_mode else 1
    asked = {
        "cpu": options.cpus and options.cpus * slots,
        "memoryMB": options.memory_mb and options.memory_mb * slots,
        "gpu": None if order.gpus_per_trial is None else order.gpus_per_trial * slots,
    }
    known = {"gpu": 0, **(given.get("resourcePerInstance") or {})}
    resources = known | {name: amount for name, amount in asked.items() if amount is not None}
    return {
        **given,
        "instances": 1,
        "completion": {"minFailedInstances": 1, "minSucceededInstances": 1},
        "taskRetryCount": 0,
        "resourcePerInstance": resources,
        "commands": _commands(options),
    }


def _commands(options: OpenpaiOptions) -> list[str]:
    file = f"{_FOLDER}/settings.json"
    agent = f"{quote(options.agent.python)} -P -m svc_trial_runner --settings {file}"
    return [
        f"mkdir -p -m 700 {_FOLDER}",
        # printf is part of the shell: the value is in no list of processes.
        f"(umask 077; printf %s '<% $secrets.{SETTINGS_SECRET} %>' | base64 -d >{file})",
        f"exec {agent}",
    ]


def _extras(options: OpenpaiOptions) -> dict[str, Any]:
    extras = dict(options.protocol.get("extras") or {})
    if options.storage:
        given = extras.get(PLUGINS)
        plugins = [one for one in given or () if one.get("plugin") != _STORAGE_PLUGIN]
        parameters = {"storageConfigNames": [options.storage]}
        extras[PLUGINS] = [*plugins, {"plugin": _STORAGE_PLUGIN, "parameters": parameters}]
    return {**extras, "submitFrom": "nni"}
