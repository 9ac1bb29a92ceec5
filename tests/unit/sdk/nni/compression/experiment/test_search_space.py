import copy
from typing import Any

import pytest

from nni.compression.experiment import AutoCompressionSearchSpaceGenerator
from nni.compression.experiment.flat_keys import parsed

SPARSITY = {"_type": "uniform", "_value": [0.01, 0.99]}
LEVEL = [{"sparsity": SPARSITY, "op_types": ["default"]}]
QAT = [
    {
        "quant_types": ["weight", "output"],
        "quant_bits": {"weight": 8, "output": 8},
        "op_types": ["Conv2d", "Linear"],
    }
]


def documented() -> AutoCompressionSearchSpaceGenerator:
    generator = AutoCompressionSearchSpaceGenerator()
    generator.add_config("level", LEVEL)
    generator.add_config("qat", QAT)
    return generator


@pytest.mark.claim("compression", 86)
def test_the_documented_example_has_the_documented_names() -> None:
    level, qat = documented().dumps()["algorithm_name"]["_value"]

    assert level == {"_name": "level", "config_list::default::::sparsity": SPARSITY}
    assert list(qat) == ["_name", "config_list::weight:output::Conv2d:Linear::::quant_bits"]


@pytest.mark.claim("compression", 86)
def test_what_a_tuner_chooses_is_the_configuration_again() -> None:
    _, qat = documented().dumps()["algorithm_name"]["_value"]
    name = "config_list::weight:output::Conv2d:Linear::::quant_bits"
    (branch,) = qat[name]["_value"]
    chosen = {key: value if key == "_name" else value["_value"][0] for key, value in branch.items()}

    assert parsed("qat", {name: chosen}) == (QAT, {})


@pytest.mark.claim("compression", 87)
def test_unknown_algorithms_are_refused() -> None:
    generator = AutoCompressionSearchSpaceGenerator()

    with pytest.raises(ValueError, match=r"algorithm_name must be one of level, .* got 'magic'"):
        generator.add_config("magic", LEVEL)
    with pytest.raises(ValueError, match=r"algorithm_name must be one of naive, .* got 'level'"):
        generator.add_quantization("level", LEVEL)


@pytest.mark.claim("compression", 87)
def test_the_given_list_stays_as_it_was() -> None:
    given = copy.deepcopy(LEVEL)
    generator = AutoCompressionSearchSpaceGenerator()

    generator.add_config("level", given, scale=SPARSITY)
    generator.dumps()["algorithm_name"]["_value"].clear()

    assert given == LEVEL
    assert generator.dumps()["algorithm_name"]["_value"]


@pytest.mark.claim("compression", 87)
def test_a_space_is_loaded_again() -> None:
    generator = documented()
    generator.add_quantization(None)
    generator.add_quantization("bnn", [{"quant_types": ["weight"], "quant_bits": 1}])
    other = AutoCompressionSearchSpaceGenerator()

    other.loads(generator.dumps())

    assert other.dumps() == generator.dumps()
    assert [one["_name"] for one in other.dumps()["quantization_name"]["_value"]] == ["none", "bnn"]


def test_a_space_needs_an_algorithm() -> None:
    with pytest.raises(ValueError, match="search space is empty: call add_config first"):
        AutoCompressionSearchSpaceGenerator().dumps()


def test_an_algorithm_is_added_once() -> None:
    generator = documented()

    with pytest.raises(ValueError, match="level was added before"):
        generator.add_config("level", LEVEL)


def test_entries_of_the_same_modules_are_refused() -> None:
    entries = [{"op_types": ["Linear"], "sparsity": 0.1}, {"op_types": ["Linear"], "sparsity": 0.2}]

    with pytest.raises(ValueError, match=r"config_list\[0\] and config_list\[1\] of l1 have the"):
        AutoCompressionSearchSpaceGenerator().add_config("l1", entries)


@pytest.mark.parametrize(
    ("space", "problem"),
    [
        ({}, "must have a choice 'algorithm_name', got None"),
        ({"algorithm_name": {"_type": "choice", "_value": []}}, "must have a choice"),
        ({"algorithm_name": {"_type": "choice", "_value": [{"_name": "x"}]}}, "got 'x'"),
    ],
)
def test_other_spaces_are_refused(space: dict[str, Any], problem: str) -> None:
    generator = documented()

    with pytest.raises(ValueError, match=problem):
        generator.loads(space)
    assert len(generator.dumps()["algorithm_name"]["_value"]) == 2
