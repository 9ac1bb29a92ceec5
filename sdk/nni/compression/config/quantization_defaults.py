"""Defaults of integer type and scheme of new quantizers, which a program may change.

They are process-wide: a quantizer that exists is not affected, and an entry of `config_list` that
says something else wins.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, cast

from nni.compression.config.quantization_settings import QuantScheme
from nni.compression.config.settings import NamedGranularity

TensorKind = Literal["weight", "input", "output"]
"""What is quantized of a module: a parameter, or what flows in or out."""

TENSOR_KINDS: Final[tuple[TensorKind, ...]] = ("weight", "input", "output")
SCHEMES: Final = (
    "per_tensor_affine",
    "per_tensor_symmetric",
    "per_channel_affine",
    "per_channel_symmetric",
)
"""Schemes by their names in NNI 2.x."""
SIGNS: Final = ("int", "uint")
"""Integer types without their bits, as in NNI 2.x."""


@dataclass(frozen=True, slots=True)
class SchemeAndSign:
    """Quantization scheme, granularity and signedness of the integers of one kind of tensor."""

    scheme: QuantScheme
    """How the range of values becomes a scale and a zero point."""
    granularity: NamedGranularity
    """What shares a scale."""
    signed: bool
    """Whether the integers have a sign."""


def scheme_and_sign(kind: TensorKind, scheme: str, dtype: str) -> SchemeAndSign:
    """Convert scheme and dtype of NNI 2.x for a kind of tensor to scheme, granularity and sign.

    Args:
        kind: a weight has its channels in dimension 0, inputs and outputs in dimension 1.
        scheme: one of `SCHEMES`.
        dtype: one of `SIGNS`.

    Examples:
        >>> scheme_and_sign("weight", "per_channel_symmetric", "int").granularity
        'out_channel'
    """
    channels: NamedGranularity = "out_channel" if kind == "weight" else "per_channel"
    return SchemeAndSign(
        scheme=cast("QuantScheme", scheme.rpartition("_")[2]),
        granularity=channels if scheme.startswith("per_channel") else "default",
        signed=dtype == "int",
    )


_chosen: Final[dict[TensorKind, SchemeAndSign]] = {}


def chosen_default(kind: TensorKind) -> SchemeAndSign | None:
    """Return the choice made by `set_quant_scheme_dtype`; None if there was none.

    Args:
        kind: kind of tensor.
    """
    return _chosen.get(kind)


def set_quant_scheme_dtype(type: TensorKind, scheme: str, dtype: str) -> None:  # noqa: A002 - documented name
    """Change one tensor kind's defaults for quantizers made from now on in this process.

    Args:
        type: `weight`, `input` or `output`.
        scheme: `per_tensor_affine`, `per_tensor_symmetric`, `per_channel_affine` or
            `per_channel_symmetric`.
        dtype: `int` or `uint`; the number of bits is that of the configuration.

    Raises:
        ValueError: an argument has another value.

    Examples:
        >>> from nni.compression.quantization import quant_scheme_dtype, set_quant_scheme_dtype
        >>> with quant_scheme_dtype("output", "per_tensor_symmetric", "int"):
        ...     set_quant_scheme_dtype("output", "per_tensor_affine", "uint")
    """
    for name, value, known in (
        ("type", type, TENSOR_KINDS),
        ("scheme", scheme, SCHEMES),
        ("dtype", dtype, SIGNS),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    _chosen[type] = scheme_and_sign(type, scheme, dtype)


@contextmanager
def quant_scheme_dtype(type: TensorKind, scheme: str, dtype: str) -> Iterator[None]:  # noqa: A002 - as above
    """Change one tensor kind's defaults for quantizers that are made inside a `with` block.

    Args:
        type: `weight`, `input` or `output`.
        scheme: as `set_quant_scheme_dtype`.
        dtype: `int` or `uint`.

    Yields:
        Nothing; afterwards the defaults are as before.

    Raises:
        ValueError: an argument has another value.

    Examples:
        >>> from nni.compression.quantization import quant_scheme_dtype
        >>> with quant_scheme_dtype("weight", "per_channel_symmetric", "int"):
        ...     pass  # make a quantizer
    """
    before = dict(_chosen)
    set_quant_scheme_dtype(type, scheme, dtype)
    try:
        yield
    finally:
        _chosen.clear()
        _chosen.update(before)
