import copy
from typing import Any

import pytest

from nni.compression.config.distillation_plan import distillation_plan
from nni.compression.config.distillation_settings import DistillationSettings
from nni.compression.config.selection import ModuleInfo
from nni.compression.config.settings import ConfigListError

LINEAR = ModuleInfo("Linear", frozenset({"weight"}))
STUDENT = {"a": LINEAR, "b": LINEAR, "norm": ModuleInfo("LayerNorm", frozenset())}
TEACHER = {**STUDENT, "c": LINEAR}


def plan(*entries: dict[str, Any]) -> dict[str, dict[str, DistillationSettings]]:
    return distillation_plan(entries, STUDENT, TEACHER)


def test_any_type_is_selected_with_its_output() -> None:
    found = plan({"op_names_re": [".*"]})

    assert list(found) == ["a", "b", "norm"]
    assert found["norm"] == {"_output_": DistillationSettings(link=("norm",))}


def test_the_first_entry_decides_about_an_output() -> None:
    entries: list[dict[str, Any]] = [
        {"op_names": ["b"], "target_names": ["_output_0"], "lambda": 3},
        {"op_types": ["Linear"], "target_names": ["_output_", "_output_1"], "apply_method": "kl"},
    ]
    before = copy.deepcopy(entries)

    found = plan(*entries)

    assert {target: one.weight for target, one in found["b"].items()} == {
        "_output_": 3.0,
        "_output_1": 1.0,
    }
    assert found["a"]["_output_1"].apply_method == "kl"
    assert entries == before


def test_settings_of_a_target_win_over_those_of_the_entry() -> None:
    entry = {
        "op_names": ["a"],
        "lambda": 2,
        "target_settings": {"_output_": {"link": ["auto", "c", "a"]}},
    }

    assert plan(entry) == {"a": {"_output_": DistillationSettings(2.0, ("a", "c"))}}


def test_a_link_must_name_a_module_of_the_teacher() -> None:
    with pytest.raises(ConfigListError, match=r"config_list\[0\].link links a of .* 'd', which"):
        plan({"op_names": ["a"], "link": ["c", "d"]})


@pytest.mark.parametrize("target", ["weight", "_input_"])
def test_only_outputs_are_compared(target: str) -> None:
    with pytest.raises(ConfigListError, match=rf"config_list\[0\] has the target '{target}'; a d"):
        plan({"op_names": ["a"], "target_names": [target]})


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"op_names": ["a"], "sparse_ratio": 0.5}, "has an unknown key 'sparse_ratio'"),
        ({"lambda": 1}, "selects no module; give op_types"),
        ({"op_names": ["a"], "lambda": -1}, "lambda must be a number"),
        ({"op_names": ["a"], "target_settings": {"_output_": {"link": 3}}}, "_output_.link must"),
    ],
)
def test_wrong_entries_are_refused(entry: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigListError, match=problem):
        plan(entry)


def test_an_empty_selection_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert plan({"op_names": ["missing"]}) == {}
    assert "the model has no module 'missing'" in caplog.text
    assert "selects no module of the student" in caplog.text
