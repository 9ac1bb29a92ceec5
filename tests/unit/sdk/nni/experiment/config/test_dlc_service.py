from __future__ import annotations

from nni.experiment import DlcConfig


def test_secret_of_the_key_is_a_secret() -> None:
    service = DlcConfig(access_key_secret="hidden")

    assert service.secret_paths() == ["accessKeySecret"]
    assert "hidden" not in repr(service)


def test_job_has_one_pod() -> None:
    several = DlcConfig(pod_count=2).problems("s", None)

    assert [problem.field for problem in several] == ["s.podCount"]
    assert DlcConfig(pod_count=1).problems("s", None) == []
