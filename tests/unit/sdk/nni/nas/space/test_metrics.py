"""Metrics of one model."""

import pytest
import torch

from nni.common.serializer import dump, load
from nni.nas.space import Metrics


def test_numbers_become_floats() -> None:
    metrics = Metrics()

    metrics.add_intermediate(1)
    metrics.add_intermediate(torch.tensor(0.5))
    metrics.final = 2

    assert metrics.intermediates == [1.0, 0.5]
    assert isinstance(metrics.final, float)


def test_dict_gives_its_default() -> None:
    metrics = Metrics()

    metrics.final = {"default": 3, "latency": 7}

    assert metrics.final == 3.0


@pytest.mark.parametrize("metric", ["good", None, [1.0], torch.zeros(2), {"default": "good"}])
def test_strict_metrics_must_be_numbers(metric: object) -> None:
    with pytest.raises(ValueError, match="a metric must be a number"):
        Metrics().add_intermediate(metric)


def test_dict_without_default_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must have the key 'default', got {'acc': 1}"):
        Metrics().final = {"acc": 1}


def test_metrics_that_are_not_strict_may_be_anything() -> None:
    metrics = Metrics(strict=False)

    metrics.final = {"acc": 1}

    assert metrics.final == {"acc": 1}


def test_intermediates_are_read_only() -> None:
    metrics = Metrics()

    metrics.intermediates.append(1.0)

    assert metrics.intermediates == []


def test_clear_removes_all() -> None:
    metrics = Metrics()
    metrics.add_intermediate(1)
    metrics.final = 2

    metrics.clear()

    assert metrics == Metrics()


def test_metrics_survive_a_dump() -> None:
    metrics = Metrics()
    metrics.add_intermediate(1)
    metrics.final = 2

    loaded = load(dump(metrics))

    assert loaded == metrics
    assert loaded is not metrics
