from __future__ import annotations

from typing import Any

import pytest

from nni.experiment import DlcConfig

GIVEN: dict[str, Any] = {
    "image": "team/trials",
    "ecs_spec": "ecs.c6.large",
    "region": "cn-hangzhou",
    "nas_data_source_id": "d-1",
    "access_key_id": "id",
}


def test_secret_of_the_key_is_a_secret() -> None:
    service = DlcConfig(access_key_secret="hidden")

    assert service.secret_paths() == ["accessKeySecret"]
    assert "hidden" not in repr(service)


def test_job_has_one_pod() -> None:
    several = DlcConfig(**GIVEN, pod_count=2).problems("s", None)

    assert [problem.field for problem in several] == ["s.podCount"]
    assert DlcConfig(**GIVEN, pod_count=1).problems("s", None) == []


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("image", "s.image"),
        ("ecs_spec", "s.ecsSpec"),
        ("region", "s.region"),
        ("nas_data_source_id", "s.nasDataSourceId"),
        ("access_key_id", "s.accessKeyId"),
    ],
)
def test_field_without_default_has_to_be_given(name: str, field: str) -> None:
    (problem,) = DlcConfig(**{**GIVEN, name: None}).problems("s", None)

    assert (problem.field, problem.rule) == (field, "must be given")
