import logging

import pytest

from nni.compression.config.selection import ModuleInfo, check_selection, expand_types, select
from nni.compression.config.settings import ConfigListError

CONV = ModuleInfo("Conv2d", frozenset({"weight", "bias"}))
LINEAR = ModuleInfo("Linear", frozenset({"weight", "bias"}))
RELU = ModuleInfo("ReLU", frozenset())
MODULES = {"conv1": CONV, "relu": RELU, "block.conv1": CONV, "block.conv10": CONV, "fc": LINEAR}


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ({"op_types": ["Conv2d"]}, ["conv1", "block.conv1", "block.conv10"]),
        ({"op_types": ["default"]}, ["conv1", "block.conv1", "block.conv10", "fc"]),
        ({"op_names": ["fc", "conv1"]}, ["conv1", "fc"]),
        ({"op_names": ["fc", "conv1"], "op_types": ["Linear"]}, ["fc"]),
        ({"op_names_re": [r"block\."]}, ["block.conv1", "block.conv10"]),
        ({"op_names_re": ["conv"]}, ["conv1"]),
        ({"op_names_re": ["block"], "op_names": ["fc"]}, ["block.conv1", "block.conv10", "fc"]),
        ({"op_partial_names": ["conv1"]}, ["conv1", "block.conv1", "block.conv10"]),
        ({"op_types": ["default"], "exclude_op_types": ["Conv2d"]}, ["fc"]),
        ({"op_types": ["Conv2d"], "exclude_op_names": ["conv1"]}, ["block.conv1", "block.conv10"]),
        ({"op_types": ["Conv2d"], "exclude_op_names_re": [".*10"]}, ["conv1", "block.conv1"]),
    ],
)
def test_filters_select_modules_in_the_order_of_the_model(
    entry: dict[str, object], names: list[str]
) -> None:
    assert select(entry, MODULES) == names


@pytest.mark.claim("compression", 4)
def test_an_entry_without_names_and_types_is_refused() -> None:
    with pytest.raises(ConfigListError, match=r"config_list\[0\] selects no module; give op_types"):
        check_selection({"sparse_ratio": 0.5}, "config_list[0]")


@pytest.mark.claim("compression", 4)
def test_unknown_names_and_types_are_warnings(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        names = select({"op_names": ["fc", "gone"], "op_types": ["Linear", "Lin"]}, MODULES, "here")

    assert names == ["fc"]
    assert "here: the model has no module 'gone'" in caplog.text
    assert "here: the model has no module of type 'Lin'" in caplog.text


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"op_names": "fc"}, "op_names must be a list of str, got 'fc'"),
        ({"op_types": [1]}, "op_types must be a list of str"),
        ({"op_names_re": ["("]}, "op_names_re must hold regular expressions, got"),
    ],
)
def test_filters_of_another_type_are_refused(entry: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigListError) as raised:
        check_selection(entry, "config_list[0]")

    assert problem in str(raised.value)


def test_default_may_stand_beside_other_types() -> None:
    assert {"Linear", "LayerNorm"} <= expand_types(["default", "LayerNorm"])
