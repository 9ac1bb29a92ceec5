from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nni.experiment import OpenpaiConfig

JOB = "taskRoles:\n  worker: {commands: [a]}\n"
RESOURCES: dict[str, Any] = {"trial_cpu_number": 2, "trial_memory_size": "8gb"}
LOGIN: dict[str, Any] = {"host": "pai.example.org", "username": "ann"}


def fields_of(service: OpenpaiConfig) -> list[str]:
    return [problem.field for problem in service.problems("s", None)]


def test_login_has_to_be_given() -> None:
    assert fields_of(OpenpaiConfig(**RESOURCES)) == ["s.host", "s.username"]
    assert fields_of(OpenpaiConfig(**LOGIN, **RESOURCES)) == []


def test_resources_are_those_of_the_section_or_of_a_job() -> None:
    assert fields_of(OpenpaiConfig(**LOGIN)) == ["s.trialCpuNumber", "s.trialMemorySize"]
    assert fields_of(OpenpaiConfig(**LOGIN, openpai_config={"taskRoles": {}})) == []


def test_token_is_a_secret() -> None:
    service = OpenpaiConfig(**LOGIN, token="hidden")

    assert service.secret_paths() == ["token"]
    assert "hidden" not in repr(service)


def test_services_get_the_content_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_text(JOB)
    service = OpenpaiConfig(**LOGIN, openpai_config_file=path)

    assert fields_of(service) == []
    assert service.sent_fields()["openpaiConfig"] == {"taskRoles": {"worker": {"commands": ["a"]}}}
    assert "openpaiConfigFile" not in service.sent_fields()
    assert "openpaiConfig" not in service.to_dict()


@pytest.mark.parametrize("text", [None, "- a", "a: ["])
def test_file_that_cannot_be_used_is_named(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    if text is not None:
        path.write_text(text)

    assert len(fields_of(OpenpaiConfig(**LOGIN, openpai_config_file=path))) == 1


def test_job_is_given_once(tmp_path: Path) -> None:
    service = OpenpaiConfig(**LOGIN, openpai_config={}, openpai_config_file=tmp_path / "a")

    assert fields_of(service) == ["s.openpaiConfigFile"]
