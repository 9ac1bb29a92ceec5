from __future__ import annotations

from typing import Any

import pytest

from nni.experiment import AmlConfig
from nni.experiment.errors import ConfigError
from tests.support.experiment_configs import complete

WORKSPACE: dict[str, Any] = {
    "subscription_id": "34adfa4f-cedf-4dc0-ba29-b6d1a69ab345",
    "resource_group": "tuning",
    "workspace_name": "trials",
    "compute_target": "gpus",
}


def fields_of(service: AmlConfig) -> list[str]:
    return [problem.field for problem in service.problems("s", None)]


def test_workspace_has_to_be_given() -> None:
    assert fields_of(AmlConfig()) == [
        "s.subscriptionId",
        "s.resourceGroup",
        "s.workspaceName",
        "s.computeTarget",
    ]
    assert fields_of(AmlConfig(**WORKSPACE)) == []


def test_image_is_that_of_the_version_unless_it_is_given() -> None:
    assert "dockerImage" not in AmlConfig(**WORKSPACE).to_dict()


def test_agents_run_several_trials_and_have_limits() -> None:
    assert AmlConfig(**WORKSPACE).reuse_mode
    assert fields_of(AmlConfig(**WORKSPACE, min_agents=2, max_agents=1)) == ["s.maxAgents"]


def test_gpu_has_room_for_at_least_one_trial() -> None:
    with pytest.raises(ConfigError, match="maxTrialNumberPerGpu"):
        complete(training_service={"platform": "aml", "maxTrialNumberPerGpu": 0})
