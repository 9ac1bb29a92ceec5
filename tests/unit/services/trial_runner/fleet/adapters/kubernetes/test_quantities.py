from fractions import Fraction

import pytest

from svc_trial_runner.fleet.adapters.kubernetes.quantities import parse_quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2", 2),
        ("500m", Fraction(1, 2)),
        ("1.5", Fraction(3, 2)),
        ("16Gi", 16 * 1024**3),
        ("16G", 16 * 1000**3),
        ("1e3", 1000),
        ("2E-1", Fraction(1, 5)),
        (".5", Fraction(1, 2)),
    ],
)
def test_quantity_is_the_number_that_kubernetes_reads(text: str, number: Fraction) -> None:
    assert parse_quantity(text) == number


@pytest.mark.parametrize("text", ["", "16 Gi", "16GB", "-1", "four", "1e9999"])
def test_other_texts_are_no_quantities(text: str) -> None:
    assert parse_quantity(text) is None


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("n", Fraction(1, 10**9)), ("u", Fraction(1, 10**6)), ("m", Fraction(1, 1000)),
        ("k", 1000), ("M", 1000**2), ("G", 1000**3), ("T", 1000**4), ("P", 1000**5),
        ("E", 1000**6), ("Ki", 1024), ("Mi", 1024**2), ("Gi", 1024**3), ("Ti", 1024**4),
        ("Pi", 1024**5), ("Ei", 1024**6),
    ],
)  # fmt: skip
def test_units_are_those_of_kubernetes(unit: str, factor: Fraction) -> None:
    assert parse_quantity(f"3{unit}") == 3 * factor


@pytest.mark.parametrize(("text", "number"), [("2.", 2), ("1e+2", 100), ("1.5e1", 15), ("0", 0)])
def test_number_may_have_a_point_and_an_exponent(text: str, number: int) -> None:
    assert parse_quantity(text) == number


@pytest.mark.parametrize("text", ["K", "1K", "1g", "1e", "1e1000", "1.2.3", "2\n", ".", "1Gi2"])
def test_unit_that_kubernetes_does_not_have_is_none(text: str) -> None:
    assert parse_quantity(text) is None
