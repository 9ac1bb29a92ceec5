import pytest

from svc_manager.domain.values import Metric, MetricType, Numbers


@pytest.mark.parametrize(
    ("numbers", "name", "number"),
    [
        (0.5, "default", 0.5),
        (0.5, "loss", None),
        ({"loss": 2.0}, "loss", 2.0),
        ({"loss": 2.0}, "default", None),
        (None, "default", None),
    ],
)
def test_a_metric_returns_its_numbers_by_name(
    numbers: Numbers, name: str, number: float | None
) -> None:
    metric = Metric(MetricType.FINAL, 0, b"", numbers, 1)

    assert metric.number(name) == number
