import inspect

import pytest

from docs.generator.configuration import configuration_page, fields_of
from nni.experiment import config
from nni.experiment.config.base import ConfigModel

MODELS = [
    value
    for name in config.__all__
    if inspect.isclass(value := getattr(config, name)) and issubclass(value, ConfigModel)
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_page_has_the_class_and_its_fields(model: type[ConfigModel]) -> None:
    page = configuration_page()

    assert f"\n## {model.__name__}\n" in page
    section = page.partition(f"\n## {model.__name__}\n")[2].partition("\n## ")[0]
    assert section.count("\n| `") == len(list(fields_of(model)))


def test_meaning_comes_from_the_text_below_the_field() -> None:
    meanings = {name: meaning for name, _, meaning in fields_of(config.ConstraintConfig)}

    assert meanings["max"] == "Largest value that is still feasible."


def test_example_of_a_class_is_a_block_of_code() -> None:
    section = configuration_page().partition("\n## LocalConfig\n")[2].partition("\n## ")[0]

    assert "\n```pycon\n>>> from nni.experiment import ExperimentConfig, LocalConfig\n" in section
    assert "Examples:" not in section
