"""What is known of an algorithm, as tables."""

import pytest

from nni.hpo import AlgorithmEntry
from nni.hpo.registry.entries import folded_name
from nni.hpo.registry.factory import find


def test_rows_of_arguments_hold_what_a_configuration_means() -> None:
    rows = {row["Name"]: row for row in find("tuner", "TPE").argument_rows()}

    assert rows["optimize_mode"]["Default"] == "maximize"
    assert rows["parallel_optimize"]["Type"] == "bool"
    assert rows["constant_liar_type"]["Range"] == "min | max | mean"
    assert rows["seed"]["Default"] == "None"
    assert all(row["Meaning"] for row in rows.values())


def test_argument_that_configurations_must_give_has_no_default() -> None:
    rows = {row["Name"]: row for row in find("assessor", "Curvefitting").argument_rows()}

    assert rows["epoch_num"]["Default"] == "required"
    assert rows["gap"]["Default"] == "1"


def test_capabilities_name_what_is_supported() -> None:
    capabilities = find("tuner", "GridSearch").capabilities

    assert capabilities["Search space"].startswith("choice, randint, uniform, quniform")
    assert capabilities["Conditional spaces"] == "yes"
    assert capabilities["Lookahead"] == "yes"
    assert capabilities["Several objectives"] == "as one number"
    assert find("tuner", "NSGA2").capabilities["Several objectives"] == "yes"
    assert find("tuner", "PBTTuner").capabilities["Assessor"] == "no"
    assert find("tuner", "BatchTuner").capabilities["Search space"] == "its own"
    assert find("tuner", "TPE").capabilities["Assessor"] == "yes"
    assert find("advisor", "Hyperband").capabilities["Assessor"] == "no"
    assert find("tuner", "TPE").capabilities["Resumable"] == "yes"
    assert find("advisor", "Hyperband").capabilities["Resumable"] == "by replay"


def test_assessor_has_no_capabilities_of_a_space() -> None:
    assert find("assessor", "Medianstop").capabilities == {"Resumable": "yes"}


def test_entry_without_a_declaration_has_no_arguments() -> None:
    entry = AlgorithmEntry("Demo", "tuner", "demo:Demo", "demo.Demo")

    assert entry.arguments == ()
    assert entry.argument_rows() == []


def test_entry_without_a_declaration_supports_usual_spaces_and_no_more() -> None:
    entry = AlgorithmEntry("Demo", "tuner", "demo:Demo", "demo.Demo")

    assert [name for name, value in entry.capabilities.items() if value == "yes"] == [
        "Conditional spaces",
        "Constraints",
        "Imported samples",
        "Assessor",
    ]
    assert not entry.keeps_first_space
    assert not entry.any_space_with_outcomes


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("TPE", "tpe"),
        ("TPETuner", "tpe"),
        ("Median_Stop-Assessor", "medianstop"),
        ("bohb advisor", "bohb"),
        ("PBT2Tuner", "pbt2"),
        ("TunerTuner", "tuner"),
        ("Tuners", "tuners"),
    ],
)
def test_names_are_compared_by_letters_and_digits_less_the_ending(name: str, folded: str) -> None:
    assert folded_name(name) == folded
