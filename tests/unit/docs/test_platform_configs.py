"""The configurations on the pages of platforms are valid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from nni.experiment.config import ExperimentConfig
from nni.experiment.config.checks import check
from nni.experiment.errors import ConfigError

PAGES = Path(__file__).parents[3] / "docs" / "platforms"
_MISSING = {"trialCommand": "python3 trial.py", "trialConcurrency": 1, "tuner": {"name": "Random"}}
_ELSEWHERE = ("sshKeyFile", "trialCodeDirectory", "searchSpaceFile", "kubeconfig")
"""Fields that name files of the reader's machine."""


def configs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield page and content of each block that has fields of an experiment."""
    for page in sorted(PAGES.glob("*.md")):
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            content = yaml.safe_load(block)
            if isinstance(content, dict) and "trainingService" in content and "name" not in content:
                yield page.name, content


CONFIGS = list(configs())


@pytest.mark.parametrize(("page", "content"), CONFIGS, ids=[page for page, _ in CONFIGS])
def test_configuration_of_the_page_is_valid(page: str, content: dict[str, Any]) -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    given = {name: value for name, value in content.items() if name != "searchSpaceFile"}
    config = ExperimentConfig(**{**_MISSING, "searchSpace": space, **given})

    try:
        check(config)
    except ConfigError as error:
        problems = [one for one in error.problems if not one.field.endswith(_ELSEWHERE)]
        assert not problems, page


def test_each_platform_has_a_configuration() -> None:
    assert {page.removesuffix(".md") for page, _ in CONFIGS} >= {"remote", "slurm"}
