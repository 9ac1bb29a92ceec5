import pytest

from nni.compression.config.quantization_defaults import (
    SchemeAndSign,
    chosen_default,
    quant_scheme_dtype,
    scheme_and_sign,
    set_quant_scheme_dtype,
)


def test_channels_are_those_of_the_kind_of_tensor() -> None:
    weight = scheme_and_sign("weight", "per_channel_symmetric", "int")
    output = scheme_and_sign("output", "per_channel_affine", "uint")

    assert weight == SchemeAndSign("symmetric", "out_channel", signed=True)
    assert output == SchemeAndSign("affine", "per_channel", signed=False)


def test_a_choice_lasts_as_long_as_the_block() -> None:
    with quant_scheme_dtype("weight", "per_channel_symmetric", "int"):
        set_quant_scheme_dtype("input", "per_tensor_affine", "uint")
        assert chosen_default("weight") == SchemeAndSign("symmetric", "out_channel", signed=True)
        assert chosen_default("input") == SchemeAndSign("affine", "default", signed=False)

    assert chosen_default("weight") is None
    assert chosen_default("input") is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("bias", "per_tensor_affine", "int"), "type must be one of weight, input, output, got 'b"),
        (("weight", "affine", "int"), "scheme must be one of per_tensor_affine, .*, got 'affine'"),
        (("weight", "per_tensor_affine", "int8"), "dtype must be one of int, uint, got 'int8'"),
    ],
)
def test_a_wrong_argument_is_refused(arguments: tuple[str, str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        set_quant_scheme_dtype(*arguments)  # type: ignore[arg-type]  # the error is the point
