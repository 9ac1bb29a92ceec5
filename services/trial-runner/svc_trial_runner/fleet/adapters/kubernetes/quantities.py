"""Parser of quantities in the notation of Kubernetes, such as `500m` or `16Gi`."""

import re
from fractions import Fraction
from typing import Final

_QUANTITY: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([a-zA-Z]*|[eE][+-]?[0-9]+)\Z")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]{1,3})\Z")
_FACTORS: Final = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{unit: Fraction(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


def parse_quantity(text: str) -> Fraction | None:
    """Return the number that a quantity represents; None: it is not one.

    Args:
        text: `2`, `500m`, `16Gi`, `1e3`, ...

    Examples:
        >>> parse_quantity("500m"), parse_quantity("1Ki"), parse_quantity("16 GB")
        (Fraction(1, 2), Fraction(1024, 1), None)
    """
    match = _QUANTITY.match(text)
    if match is None:
        return None
    number, unit = match.groups()
    exponent = _EXPONENT.match(unit)
    if exponent is not None:
        return Fraction(number) * Fraction(10) ** int(exponent[1])
    factor = _FACTORS.get(unit)
    return None if factor is None else Fraction(number) * factor
