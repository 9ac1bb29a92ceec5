import pytest

from nni.nas.experiment.config import (
    GraphModelFormatConfig,
    ModelFormatConfig,
    RawModelFormatConfig,
    SequentialEngineConfig,
    SimplifiedModelFormatConfig,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("graph", GraphModelFormatConfig),
        ("simplified", SimplifiedModelFormatConfig),
        ("raw", RawModelFormatConfig),
    ],
)
def test_formats_are_chosen_by_name(name: str, expected: type[ModelFormatConfig]) -> None:
    made = ModelFormatConfig.of(name)

    assert type(made) is expected
    assert made.to_dict() == {"name": name}


def test_keep_is_another_name_of_raw() -> None:
    made = ModelFormatConfig(name="keep")

    assert isinstance(made, RawModelFormatConfig)
    assert made.to_dict() == {"name": "raw"}


def test_unknown_formats_are_refused() -> None:
    with pytest.raises(ValueError, match="model format must be one of 'graph', 'simplified'"):
        ModelFormatConfig(name="xml")


def test_engines_are_no_formats() -> None:
    with pytest.raises(TypeError, match="model format must be a name or a ModelFormatConfig"):
        ModelFormatConfig.of(SequentialEngineConfig())


def test_shape_of_the_input_is_kept() -> None:
    assert GraphModelFormatConfig(dummy_input=[1, 3]).dummy_input == [1, 3]
