"""Lists of tuners by name."""

import pytest

from nni.hpo.registry.named_tuners import check_tuners, named_tuners


def test_names_and_dicts_are_read_and_labels_are_unique() -> None:
    found = named_tuners(
        ["TPE", {"name": "TPE", "class_args": {"seed": 1}}, {"name": "Random", "label": "chance"}]
    )

    assert [one.label for one in found] == ["TPE", "TPE-2", "chance"]
    assert found[1].class_args == {"seed": 1}


def test_label_has_up_to_64_characters() -> None:
    found = named_tuners(["TPE", {"name": "Random", "label": "l" * 64}])

    assert found[1].label == "l" * 64


def test_name_that_is_the_label_of_another_gets_a_number() -> None:
    found = named_tuners(["TPE", {"name": "Random", "label": "TPE"}])

    assert [one.label for one in found] == ["TPE-2", "TPE"]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("TPE", r"tuners must be a list of tuners, got 'TPE'"),
        (["TPE"], r"tuners must have 2 to 20 tuners, got 1"),
        (["TPE", 3], r"tuners\[1\] must be a name or a dict with 'name', got 3"),
        (["TPE", {}], r"tuners\[1\].name must be the name of a tuner, got None"),
        (["TPE", {"name": "a", "className": "b.C"}], r"tuners\[1\].className is not known; .*algo"),
        (["TPE", {"name": "a", "classArgs": 3}], r"tuners\[1\].classArgs must be a dict, got 3"),
        (["TPE", {"name": "a", "label": 3}], r"tuners\[1\].label must be a text"),
        (
            ["TPE", {"name": "a", "label": "l" * 65}],
            r"label must be a text of at most 64 characters",
        ),
        (
            [{"name": "a", "label": "same"}, {"name": "b", "label": "same"}],
            r"tuners\[0\].label must differ from the other labels, got 'same'",
        ),
        (
            ["TPE", {"name": "a", "classArgs": {"optimize_mode": "minimize"}}],
            r"tuners\[1\].classArgs.optimize_mode must be left out, got 'minimize'",
        ),
    ],
)
def test_malformed_lists_are_refused(items: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        named_tuners(items)


def test_check_takes_none_and_refuses_a_malformed_list() -> None:
    check_tuners(None, policy="equal")
    with pytest.raises(ValueError, match="must have 2 to 20"):
        check_tuners(["TPE"])


def test_list_has_2_to_20_tuners() -> None:
    assert [len(named_tuners(["TPE"] * count)) for count in (2, 20)] == [2, 20]
    with pytest.raises(ValueError, match="tuners must have 2 to 20 tuners, got 21"):
        named_tuners(["TPE"] * 21)


def test_third_tuner_of_a_name_has_the_next_number() -> None:
    assert [one.label for one in named_tuners(["TPE"] * 3)] == ["TPE", "TPE-2", "TPE-3"]
