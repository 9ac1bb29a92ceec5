import base64
from dataclasses import replace
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.kubernetes.manifests import (
    SECRET_PATH,
    RoleCommand,
    job_manifest,
    labels_of_pool,
    merged,
    owner_patch,
    role_template,
    secret_manifest,
    selector,
)
from svc_trial_runner.fleet.adapters.kubernetes.options import parse_options
from svc_trial_runner.fleet.domain.agents import AgentCredentials, AgentName, AgentOrder

NAME = AgentName("0123abcd", "exp-a", 7)
START_SCRIPT = """\
if command -v tini >/dev/null 2>&1; then exec tini -- "$@"; fi
exec "$@"
"""
LABELS = labels_of_pool("0123abcd", "exp-a", "kubernetes")


def order(gpus: int | None = None, slots: int = 2) -> AgentOrder:
    return AgentOrder(NAME, AgentCredentials("user", "password", "token"), slots, None, gpus)


def job(options: dict[str, Any] | None = None, *, gpus: int | None = None) -> dict[str, Any]:
    return job_manifest(parse_options(options or {}), order(gpus), LABELS, "4.0")


def pod(options: dict[str, Any] | None = None, *, gpus: int | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = job(options, gpus=gpus)["spec"]["template"]["spec"]
    return spec


def agent(options: dict[str, Any] | None = None, *, gpus: int | None = None) -> dict[str, Any]:
    (container,) = pod(options, gpus=gpus)["containers"]
    found: dict[str, Any] = container
    return found


def test_job_has_the_name_of_its_agent_and_the_labels_of_its_pool() -> None:
    metadata = job()["metadata"]

    assert metadata["name"] == str(NAME)
    assert metadata["labels"].items() >= LABELS.items()


def test_job_runs_its_pod_once() -> None:
    spec = job()["spec"]

    assert (spec["backoffLimit"], spec["completions"]) == (0, 1)
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


@pytest.mark.claim("platform", 82)
def test_job_has_name_image_resources_mounts_and_environment_of_the_section() -> None:
    nfs = {"nfs": {"server": "nas", "path": "/data"}, "mountPath": "/data", "readOnly": True}
    secret = {"name": "wandb", "key": "token", "env": "WANDB_API_KEY"}
    section = {"image": "trials:1", "cpus": 4, "memory": "16Gi", "ephemeralStorage": "20Gi"}

    container = agent({**section, "volumes": [nfs], "secrets": [secret]}, gpus=1)

    amounts = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "20Gi", "nvidia.com/gpu": "2"}
    assert container["image"] == "trials:1"
    assert container["resources"] == {"requests": amounts, "limits": amounts}
    assert {"name": "volume-0", "mountPath": "/data", "readOnly": True} in container["volumeMounts"]
    reference = {"secretKeyRef": {"name": "wandb", "key": "token"}}
    assert {"name": "WANDB_API_KEY", "valueFrom": reference} in container["env"]


def test_volume_has_its_source_in_the_pod_and_its_place_in_the_container() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "team"}}
    data = {"name": "data", "mountPath": "/data", "subPath": "a", "readOnly": True, **claim}

    spec = pod({"volumes": [data, {"emptyDir": {}, "mountPath": "/scratch"}]})

    mounts = spec["containers"][0]["volumeMounts"]
    assert {"name": "data", **claim} in spec["volumes"]
    assert {"name": "volume-1", "emptyDir": {}} in spec["volumes"]
    assert {"name": "data", "mountPath": "/data", "subPath": "a", "readOnly": True} in mounts
    assert {"name": "volume-1", "mountPath": "/scratch"} in mounts


def test_image_is_that_of_the_version_by_default() -> None:
    assert agent()["image"] == "nni/trial-runner:4.0"


def test_gpus_of_the_section_win_over_those_of_the_trials() -> None:
    assert agent({"gpus": 4, "gpuResource": "amd.com/gpu"}, gpus=1)["resources"]["limits"] == {
        "amd.com/gpu": "4"
    }


def test_agent_of_one_trial_asks_for_the_gpus_of_one() -> None:
    assert agent({"reuseMode": False}, gpus=1)["resources"]["limits"] == {"nvidia.com/gpu": "1"}


def test_pod_keeps_the_restricted_standard_by_default() -> None:
    spec = pod()

    assert spec["securityContext"]["runAsNonRoot"] is True
    # The user of NNI's images.
    assert [spec["securityContext"][one] for one in ("runAsUser", "runAsGroup", "fsGroup")] == [
        65532
    ] * 3
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*spec["initContainers"], *spec["containers"]):
        context = container["securityContext"]
        assert context == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }


def test_pod_has_no_token_of_a_service_account() -> None:
    assert pod({"serviceAccount": "trainer"})["automountServiceAccountToken"] is False


def test_container_of_the_trials_does_not_mount_the_secret_of_the_agent() -> None:
    spec = pod()

    (first,), (container,) = spec["initContainers"], spec["containers"]
    assert SECRET_PATH in [one["mountPath"] for one in first["volumeMounts"]]
    assert SECRET_PATH not in [one["mountPath"] for one in container["volumeMounts"]]


def test_settings_are_in_the_secret_only() -> None:
    manifest = secret_manifest(NAME, LABELS, b"hunter2")

    assert base64.b64decode(manifest["data"]["settings.json"]) == b"hunter2"
    assert "password" not in str(job())


def test_scheduling_options_are_passed_on() -> None:
    toleration = {"key": "gpu", "operator": "Exists"}
    options = {
        "nodeSelector": {"pool": "gpu", "fast": True},
        "tolerations": [toleration],
        "priorityClass": "low",
        "serviceAccount": "trainer",
        "imagePullSecrets": ["registry"],
    }

    spec = pod(options)

    assert spec["nodeSelector"] == {"pool": "gpu", "fast": "true"}
    assert spec["tolerations"] == [toleration]
    assert (spec["priorityClassName"], spec["serviceAccountName"]) == ("low", "trainer")
    assert spec["imagePullSecrets"] == [{"name": "registry"}]


def test_job_of_a_queue_is_suspended_until_kueue_starts_it() -> None:
    manifest = job({"queue": "team"})

    assert manifest["spec"]["suspend"] is True
    assert manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"


def test_template_is_merged_by_the_names_of_containers() -> None:
    template = {
        "metadata": {"annotations": {"a": "b"}, "labels": {"nni-pool": "another"}},
        "spec": {"hostIPC": True, "containers": [{"name": "agent", "tty": True}, {"name": "x"}]},
    }

    found = job({"podTemplate": template})["spec"]["template"]

    first, second = found["spec"]["containers"]
    assert first["tty"] is True
    assert first["command"]
    assert second == {"name": "x"}
    assert found["spec"]["hostIPC"] is True
    assert found["metadata"]["labels"]["nni-pool"] == "exp-a"


def test_mounted_secret_is_a_read_only_volume() -> None:
    spec = pod({"secrets": [{"name": "files", "mountPath": "/secrets"}, {"name": "all"}]})

    assert {"name": "secret-0", "secret": {"secretName": "files"}} in spec["volumes"]
    mounts = spec["containers"][0]["volumeMounts"]
    assert {"name": "secret-0", "mountPath": "/secrets", "readOnly": True} in mounts
    assert spec["containers"][0]["envFrom"] == [{"secretRef": {"name": "all"}}]


def test_merge_appends_items_without_names_and_leaves_its_arguments() -> None:
    base = {"items": [1], "deep": {"a": 1}}

    assert merged(base, {"items": [2], "deep": {"b": 2}, "c": 3}) == {
        "items": [1, 2],
        "deep": {"a": 1, "b": 2},
        "c": 3,
    }
    assert base == {"items": [1], "deep": {"a": 1}}


def test_secret_is_owned_by_the_job_after_the_patch() -> None:
    patch = owner_patch({"metadata": {"name": "a", "uid": "b"}})

    (owner,) = patch["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", "a", "b")


def test_selector_has_all_labels() -> None:
    assert selector({"b": "2", "a": "1"}) == "a=1,b=2"


def test_finished_job_is_kept_as_long_as_the_section_says() -> None:
    spec = job({"ttlSecondsAfterFinished": 60, "graceSeconds": 20})["spec"]

    assert (spec["ttlSecondsAfterFinished"], spec["parallelism"]) == (60, 1)
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 20
    assert "suspend" not in spec


def test_secret_cannot_be_changed_and_is_read_by_its_user_alone() -> None:
    volumes = {one["name"]: one for one in pod()["volumes"]}

    assert volumes["nni-secret"]["secret"] == {"secretName": str(NAME), "defaultMode": 0o400}
    assert secret_manifest(NAME, LABELS, b"")["immutable"] is True
    assert secret_manifest(NAME, LABELS, b"")["metadata"]["labels"]["nni-agent"] == str(NAME)


def test_pod_gets_no_variables_of_the_services_of_its_namespace() -> None:
    assert pod()["enableServiceLinks"] is False


def test_first_container_asks_for_processors_and_memory_alone() -> None:
    options = {"cpus": 4, "memory": "16Gi", "ephemeralStorage": "20Gi", "gpus": 1}

    (first,) = pod(options)["initContainers"]

    amounts = {"cpu": "4", "memory": "16Gi"}
    assert first["resources"] == {"requests": amounts, "limits": amounts}
    (mount,) = [one for one in first["volumeMounts"] if one["name"] == "nni-secret"]
    assert mount["readOnly"] is True


def test_pod_without_pod_security_has_no_restrictions() -> None:
    spec = pod({"podSecurity": "none", "runAsUser": 7})

    assert spec["securityContext"]["runAsUser"] == 7
    assert "runAsNonRoot" not in spec["securityContext"]
    assert "securityContext" not in spec["containers"][0]


def test_policy_of_pulls_is_that_of_the_section() -> None:
    assert agent({"imagePullPolicy": "Always"})["imagePullPolicy"] == "Always"
    assert "imagePullPolicy" not in agent()


def test_options_that_are_not_given_are_not_in_the_pod() -> None:
    given = {"imagePullSecrets", "nodeSelector", "tolerations", "priorityClassName"}

    assert given.isdisjoint(pod())
    assert agent()["resources"] == {}


def test_secrets_are_variables_or_mounts_or_all_of_their_keys() -> None:
    variable = {"name": "a", "key": "k", "env": "A"}
    mounted = {"name": "b", "mountPath": "/b"}

    found = agent({"secrets": [variable, mounted, {"name": "c"}]})

    assert [one["name"] for one in found["env"]] == ["HOME", "A"]
    assert found["envFrom"] == [{"secretRef": {"name": "c"}}]
    mounts = [one for one in found["volumeMounts"] if one["name"].startswith("secret-")]
    assert mounts == [{"name": "secret-1", "mountPath": "/b", "readOnly": True}]


def test_pod_beside_the_agent_has_neither_settings_nor_secret() -> None:
    command = RoleCommand("ps", "python3 serve.py")
    template = {"spec": {"containers": [{"name": "log"}], "initContainers": [{"name": "wait"}]}}
    options = parse_options({"podTemplate": template})

    found = role_template(options, order(), LABELS, "4.0", command)

    spec = found["spec"]
    own, other = spec["containers"]
    assert found["metadata"]["labels"]["nni-role"] == "ps"
    assert [one["name"] for one in spec["initContainers"]] == ["wait"]
    assert [one["name"] for one in spec["volumes"]] == ["nni-home"]
    assert [one["name"] for one in own["volumeMounts"]] == ["nni-home"]
    assert own["command"] == ["/bin/sh", "-c", "python3 serve.py"]
    assert other == {"name": "log"}


def test_labels_and_annotations_of_the_section_are_on_job_and_pod() -> None:
    found = job({"labels": {"team": "a", "nni-pool": "b"}, "annotations": {"note": "c"}})

    for one in (found, found["spec"]["template"]):
        labels = one["metadata"]["labels"]
        assert (labels["team"], labels["nni-pool"], labels["nni-agent"]) == (
            "a",
            "exp-a",
            str(NAME),
        )
        assert one["metadata"]["annotations"] == {"note": "c"}


def test_merge_changes_the_item_of_the_same_name_alone() -> None:
    base = {"items": [{"name": "a", "x": 1}, {"name": "b", "x": 1}, 3]}

    found = merged(base, {"items": [{"name": "b", "y": 2}, {"z": 4}]})

    assert found["items"] == [{"name": "a", "x": 1}, {"name": "b", "x": 1, "y": 2}, 3, {"z": 4}]
    assert merged({"a": [1], "b": {}}, {"a": {}, "b": [1]}) == {"a": {}, "b": [1]}


def test_job_of_an_agent_without_options_is_this_one() -> None:
    common = {
        "image": "nni/trial-runner:4.0",
        "env": [{"name": "HOME", "value": "/nni/home"}],
        "workingDir": "/nni/home",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {},
    }
    own = [
        {"name": "nni-home", "mountPath": "/nni/home"},
        {"name": "nni-settings", "mountPath": "/nni/settings"},
    ]
    labels = {
        "app.kubernetes.io/managed-by": "nni",
        "nni-installation": "0123abcd",
        "nni-pool": "exp-a",
        "nni-platform": "kubernetes",
        "nni-agent": str(NAME),
    }

    assert job() == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": str(NAME), "labels": labels, "annotations": {}},
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "ttlSecondsAfterFinished": 86_400,
            "template": {
                "metadata": {"labels": labels, "annotations": {}},
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": 30,
                    "initContainers": [
                        {
                            **common,
                            "name": "settings",
                            "volumeMounts": [
                                *own,
                                {
                                    "name": "nni-secret",
                                    "mountPath": "/nni/secret",
                                    "readOnly": True,
                                },
                            ],
                            "command": [
                                "/bin/sh", "-c",
                                'umask 077 && cat "$1" >"$2" && mkdir -p "$3"', "settings",
                                "/nni/secret/settings.json", "/nni/settings/settings.json",
                                "/nni/home/agent",
                            ],
                        }
                    ],
                    "containers": [
                        {
                            **common,
                            "name": "agent",
                            "volumeMounts": own,
                            "command": [
                                "/bin/sh", "-c",
                                START_SCRIPT,
                                "agent", "python3", "-P", "-m", "svc_trial_runner", "--settings",
                                "/nni/settings/settings.json",
                            ],
                            "envFrom": [],
                        }
                    ],
                    "volumes": [
                        {"name": "nni-home", "emptyDir": {}},
                        {
                            "name": "nni-settings",
                            "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"},
                        },
                        {
                            "name": "nni-secret",
                            "secret": {"secretName": str(NAME), "defaultMode": 0o400},
                        },
                    ],
                    "securityContext": {
                        "runAsUser": 65532,
                        "runAsGroup": 65532,
                        "fsGroup": 65532,
                        "fsGroupChangePolicy": "OnRootMismatch",
                        "runAsNonRoot": True,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                },
            },
        },
    }  # fmt: skip


def test_secret_and_its_owner_are_these() -> None:
    assert secret_manifest(NAME, {"a": "b"}, b"{}") == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": str(NAME), "labels": {"a": "b", "nni-agent": str(NAME)}},
        "type": "Opaque",
        "immutable": True,
        "data": {"settings.json": "e30="},
    }
    assert owner_patch({"metadata": {"name": "a", "uid": "b"}}, "v2", "PyTorchJob") == {
        "metadata": {
            "ownerReferences": [{"apiVersion": "v2", "kind": "PyTorchJob", "name": "a", "uid": "b"}]
        }
    }


def test_volumes_of_an_operator_are_mounted_behind_those_of_the_section() -> None:
    more = (({"name": "store", "emptyDir": {}}, {"name": "store", "mountPath": "/store"}),)
    options = replace(
        parse_options({"volumes": [{"emptyDir": {}, "mountPath": "/data"}]}), more_volumes=more
    )

    spec = job_manifest(options, order(), LABELS, "4.0")["spec"]["template"]["spec"]

    assert [one["name"] for one in spec["volumes"]][-2:] == ["volume-0", "store"]
    assert spec["containers"][0]["volumeMounts"][-1] == {"name": "store", "mountPath": "/store"}


@pytest.mark.parametrize(
    ("options", "gpus", "amount"),
    [({}, None, None), ({}, 0, None), ({}, 3, "6"), ({"gpus": 0}, 3, None), ({"gpus": 1}, 3, "1")],
)
def test_gpus_of_an_agent_are_those_of_its_slots_unless_given(
    options: dict[str, Any], gpus: int | None, amount: str | None
) -> None:
    limits = agent(options, gpus=gpus)["resources"].get("limits", {})

    assert limits.get("nvidia.com/gpu") == amount
