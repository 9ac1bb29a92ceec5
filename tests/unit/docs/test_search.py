"""The examples of docs/search.md run."""

import re
from pathlib import Path

import yaml

from nni.experiment.config.experiment_fields import ConstraintConfig, ObjectiveConfig
from nni.experiment.config.search_config import SearchConfig
from nni.hpo.registry.factory import validate
from nni.hpo.space.parser import parse_space

PAGE = (Path(__file__).parents[3] / "docs" / "search.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_python_examples_run() -> None:
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks("python"):
        exec(compile(block, "docs/search.md", "exec", dont_inherit=True), names)

    assert len(blocks("python")) == 11


def test_yaml_examples_are_read() -> None:
    objectives, priors, costs, search, halving, robust = map(yaml.safe_load, blocks("yaml"))

    assert [ObjectiveConfig(**item).mode for item in objectives["objectives"]] == [
        "maximize",
        "minimize",
    ]
    assert ConstraintConfig(**objectives["constraints"][0]).max == 2000
    assert all(parameter.prior for parameter in parse_space(priors["searchSpace"]).parameters)
    for described in (costs["tuner"], robust["tuner"]):
        validate("tuner", described["name"], described["classArgs"])
    section = SearchConfig(**search["search"])
    assert section.experiments() == ["k3x9q1ab"]
    assert section.stop.no_improvement == 50
    validate("advisor", halving["advisor"]["name"], halving["advisor"]["classArgs"])
