import pytest

from nni.compression.config.entries import check_entry, check_list, shortcuts
from nni.compression.config.settings import SETTING_KEYS, ConfigListError, check_settings


def test_settings_of_the_entry_itself_are_shortcuts() -> None:
    entry = {"op_types": ["Linear"], "sparse_ratio": 0.5, "target_settings": {"bias": {}}}

    assert shortcuts(entry, SETTING_KEYS) == {"sparse_ratio": 0.5}


@pytest.mark.parametrize("config_list", [{"op_types": ["Linear"]}, None, ["Linear"]])
def test_a_configuration_list_is_a_list_of_dicts(config_list: object) -> None:
    with pytest.raises(ConfigListError, match="config_list must be a list of dicts"):
        check_list(config_list)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"sparse_rate": 0.5}, r"entry has an unknown key 'sparse_rate'; did you mean"),
        ({"target_names": []}, r"entry\.target_names must be a list of str, got \[\]"),
        ({"target_settings": [1]}, r"entry\.target_settings must be a dict of dicts, got \[1\]"),
        ({"target_settings": {"bias": 1}}, r"target_settings\.bias must be a dict, got 1"),
        ({"target_settings": {"bias": {"sparse_ratio": 2}}}, r"bias\.sparse_ratio must be a numb"),
        ({"op_types": []}, "selects no module"),
    ],
)
def test_a_broken_rule_is_named(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigListError, match=problem):
        check_entry({"op_types": ["Linear"], **values}, "entry", SETTING_KEYS, check_settings)
