from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nni.experiment import AdlConfig, ExperimentConfig, FrameworkControllerConfig, KubeflowConfig
from nni.experiment.config.training_services import new_training_service
from nni.experiment.errors import ConfigError

ROLE: dict[str, Any] = {"dockerImage": "i", "memorySize": 8192, "replicas": 1}
KUBEFLOW: dict[str, Any] = {"operator": "tf-operator", "worker": ROLE}
FRAMEWORK = """\
kind: Framework
spec:
  taskRoles:
    - {name: worker, task: {pod: {spec: {containers: [{name: main, image: i}]}}}}
"""


def framework(**fields: Any) -> FrameworkControllerConfig:
    return FrameworkControllerConfig(**fields)


def fields_of(service: KubeflowConfig | FrameworkControllerConfig, gpus: int = 0) -> list[str]:
    return [problem.field for problem in service.problems("s", gpus)]


def test_memory_without_a_unit_is_megabytes() -> None:
    service = KubeflowConfig(**KUBEFLOW)

    assert service.to_dict()["worker"]["memorySize"] == "8192mb"


@pytest.mark.parametrize("spelling", ["minSucceedTaskCount", "minSucceededTaskCount"])
def test_completion_policy_has_two_spellings(spelling: str) -> None:
    role = {"name": "worker", "frameworkAttemptCompletionPolicy": {spelling: 1}}

    (found,) = framework(task_roles=[role]).to_dict()["taskRoles"]

    assert found["frameworkAttemptCompletionPolicy"] == {"minSucceedTaskCount": 1}


def test_completion_policy_in_both_spellings_is_refused() -> None:
    policy = {"minSucceedTaskCount": 1, "minSucceededTaskCount": 1}

    with pytest.raises(ConfigError, match="must not have minSucceedTaskCount and"):
        framework(task_roles=[{"frameworkAttemptCompletionPolicy": policy}])


@pytest.mark.parametrize("spelling", ["nfs", "NFS", "Nfs"])
def test_kind_of_storage_may_be_written_in_any_case(spelling: str) -> None:
    storage = {"storageType": spelling, "server": "nas", "path": "/"}

    assert (
        KubeflowConfig(**{**KUBEFLOW, "storage": storage}).to_dict()["storage"]["storageType"]
        == "nfs"
    )


def test_unknown_field_of_a_role_is_named() -> None:
    with pytest.raises(ConfigError, match=r"worker\.gpuNum is no field here \(did you mean gpuN"):
        KubeflowConfig(**{**KUBEFLOW, "worker": {"gpuNum": 1}})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"operator": None}, "s.operator"),
        ({"worker": None}, "s.worker"),
        ({"master": {}}, "s.master"),
        ({"operator": "pytorch-operator", "ps": {}}, "s.ps"),
        ({"worker": {"gpuNumber": 1}}, "s.worker.gpuNumber"),
        ({"inCluster": True, "context": "lab"}, "s.inCluster"),
    ],
)
def test_broken_rule_of_kubeflow_is_named(changes: dict[str, Any], field: str) -> None:
    assert fields_of(KubeflowConfig(**{**KUBEFLOW, **changes}), gpus=2) == [field]


def test_usable_sections_have_no_problem() -> None:
    roles = [{"name": "worker"}]

    assert fields_of(KubeflowConfig(**KUBEFLOW)) == []
    assert fields_of(framework(task_roles=roles)) == []
    assert AdlConfig().problems("s", 1) == []


def test_framework_needs_roles_or_a_template() -> None:
    assert fields_of(FrameworkControllerConfig()) == ["s.taskRoles"]


def test_service_account_is_given_once() -> None:
    service = framework(task_roles=[{}], service_account="a", service_account_name="b")

    assert fields_of(service) == ["s.serviceAccountName"]


def test_services_get_the_content_of_the_template(tmp_path: Path) -> None:
    path = tmp_path / "template.yml"
    path.write_text(FRAMEWORK)
    service = FrameworkControllerConfig(config_path=path)

    assert fields_of(service) == []
    assert service.sent_fields()["framework"]["kind"] == "Framework"
    assert "framework" not in service.to_dict()


@pytest.mark.parametrize("text", [None, "- a", "a: ["])
def test_template_that_cannot_be_used_is_named(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "template.yml"
    if text is not None:
        path.write_text(text)

    assert len(fields_of(FrameworkControllerConfig(config_path=path))) == 1


def test_sent_template_is_used_where_its_file_is_not(tmp_path: Path) -> None:
    service = FrameworkControllerConfig(config_path=tmp_path / "gone.yml", framework={"a": 1})

    assert fields_of(service) == []
    assert service.sent_fields()["framework"] == {"a": 1}


@pytest.mark.parametrize("platform", ["kubeflow", "frameworkcontroller", "adl"])
def test_platform_has_a_class(platform: str) -> None:
    assert new_training_service(platform).platform == platform


def test_section_of_adaptdl_is_loaded() -> None:
    section = {
        "platform": "adl",
        "trialCpuNumber": 1,
        "checkpoint": {"storageClass": "dfs", "storageSize": "1Gi"},
    }

    service = ExperimentConfig(training_service=section).training_service

    assert service.to_dict()["trialCpuNumber"] == "1"
