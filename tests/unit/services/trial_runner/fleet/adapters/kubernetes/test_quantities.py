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
