import pytest

from nni.compression.config.settings import (
    Align,
    ConfigListError,
    PruningSetting,
    check_settings,
    settings_from,
)


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("sparse_ratio", 1.5, "must be a number in [0, 1], got 1.5"),
        ("sparse_ratio", True, "must be a number in [0, 1], got True"),
        ("max_sparse_ratio", 0, "must be a number in (0, 1], got 0"),
        ("min_sparse_ratio", 1, "must be a number in [0, 1), got 1"),
        ("sparse_threshold", float("inf"), "must be a number that is finite, got inf"),
        ("global_group_id", 0.5, "must be an int or a str, got 0.5"),
        ("dependency_group_id", ["a"], "must be an int or a str, got ['a']"),
        ("internal_metric_block", 0, "must be an int >= 1, got 0"),
        ("granularity", "row", "must be one of default, in_channel"),
        ("granularity", [0], "block sizes >= 1 or -1, got [0]"),
        ("apply_method", "max", "must be one of bypass, mul, add, got 'max'"),
        ("align", {"dims": [0]}, "must be a dict with a str target_name"),
        ("align", {"target_name": "weight", "dim": 0}, "has an unknown key 'dim'"),
    ],
)
def test_a_value_out_of_range_is_refused_with_place_rule_and_value(
    key: str, value: object, rule: str
) -> None:
    with pytest.raises(ConfigListError) as raised:
        check_settings({key: value}, "config_list[3]")

    assert str(raised.value).startswith(f"config_list[3].{key} ")
    assert rule in str(raised.value)


def test_an_unknown_key_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigListError, match="'sparse_ration'; did you mean 'sparse_ratio'"):
        check_settings({"sparse_ration": 0.5}, "config_list[0]")


def test_ratio_and_threshold_exclude_each_other() -> None:
    with pytest.raises(ConfigListError, match="both sparse_ratio and sparse_threshold"):
        check_settings({"sparse_ratio": 0.5, "sparse_threshold": 1.0}, "config_list[0]")


def test_settings_are_values() -> None:
    settings = settings_from(
        {
            "granularity": [2, -1],
            "align": {"target_name": "weight", "dims": [1]},
            "sparse_ratio": None,
        }
    )

    assert settings.granularity == (2, -1)
    assert settings.align == Align("weight", (1,))
    assert settings.sparse_ratio is None


def test_a_registered_type_has_its_targets() -> None:
    PruningSetting.register("RegisteredInATest", {"kernel": {"sparse_ratio": 0.1}})

    assert PruningSetting.of("RegisteredInATest") == {"kernel": {"sparse_ratio": 0.1}}
    assert set(PruningSetting.of("Embedding")) == {"weight"}
    with pytest.raises(ConfigListError, match="'Other' target 'kernel'"):
        PruningSetting.register("Other", {"kernel": {"ratio": 0.1}})
