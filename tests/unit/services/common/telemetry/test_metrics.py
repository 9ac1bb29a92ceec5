"""The text is read back by the parser of Prometheus's own library."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from svc_common.telemetry.metrics import Registry, process_registry, totals


def parsed(registry: Registry) -> dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]]:
    """Read the text as Prometheus does: family, then (name, labels) of each sample."""
    return {
        family.name: {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for sample in family.samples
        }
        for family in text_string_to_metric_families(registry.render())
    }


def test_a_counter_grows_by_its_labels() -> None:
    registry = Registry()
    counter = registry.counter("nni_ends_total", "Trials that ended", ("state",))
    counter.inc("FAILED")
    counter.inc("FAILED", by=2)
    counter.inc("SUCCEEDED")

    assert parsed(registry)["nni_ends"] == {
        ("nni_ends_total", (("state", "FAILED"),)): 3.0,
        ("nni_ends_total", (("state", "SUCCEEDED"),)): 1.0,
    }
    assert counter.value("FAILED") == 3.0


def test_a_counter_without_labels_begins_at_zero() -> None:
    registry = Registry()
    registry.counter("nni_things_total", "Things")

    assert parsed(registry)["nni_things"] == {("nni_things_total", ()): 0.0}


def test_a_gauge_is_read_at_scrape_time() -> None:
    registry = Registry()
    live = {"RUNNING": 1.0}
    registry.gauge("nni_trials", "Trials", lambda: totals(live), ("state",))
    registry.render()
    live["RUNNING"] = 7.5

    assert parsed(registry)["nni_trials"] == {("nni_trials", (("state", "RUNNING"),)): 7.5}


def test_a_histogram_counts_values_up_to_each_bound() -> None:
    registry = Registry()
    histogram = registry.histogram("nni_seconds", "Time", (0.1, 1.0), ("kind",))
    for value in (0.05, 0.1, 0.5, 20.0):
        histogram.observe(value, "a")

    found = parsed(registry)["nni_seconds"]

    buckets = {
        dict(labels)["le"]: value for (name, labels), value in found.items() if "le" in dict(labels)
    }
    assert buckets == {"0.1": 2.0, "1": 3.0, "+Inf": 4.0}
    assert found["nni_seconds_sum", (("kind", "a"),)] == pytest.approx(20.65)
    assert found["nni_seconds_count", (("kind", "a"),)] == histogram.count("a") == 4


@pytest.mark.parametrize("text", ['quo"te', "back\\slash", "new\nline", "ünï"])
def test_any_text_can_be_a_label(text: str) -> None:
    registry = Registry()
    registry.counter("nni_x_total", text, ("word",)).inc(text)

    ((_, labels),) = parsed(registry)["nni_x"]

    assert dict(labels) == {"word": text}


def test_non_finite_values_are_written_as_prometheus_does() -> None:
    registry = Registry()
    samples = [(("a",), float("inf")), (("b",), float("-inf")), (("c",), float("nan"))]
    registry.gauge("nni_y", "Y", lambda: samples, ("n",))

    values = list(parsed(registry)["nni_y"].values())

    assert values[:2] == [float("inf"), float("-inf")]
    assert values[2] != values[2]


def test_a_process_shows_service_version_and_resources() -> None:
    found = parsed(process_registry("manager", "4.0"))

    assert found["nni_build_info"] == {
        ("nni_build_info", (("service", "manager"), ("version", "4.0"))): 1.0
    }
    assert found["process_resident_memory_bytes"]["process_resident_memory_bytes", ()] > 1e6
    assert found["process_open_fds"]["process_open_fds", ()] >= 3
    assert found["process_cpu_seconds"]["process_cpu_seconds_total", ()] > 0


def test_a_process_shows_the_documented_metrics_only() -> None:
    found = parsed(process_registry("manager", "4.0"))

    assert set(found) == {
        "nni_build_info",
        "process_cpu_seconds",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
    }


def test_an_instrument_has_no_time_of_creation() -> None:
    registry = Registry()
    registry.counter("nni_things_total", "Things").inc()
    registry.histogram("nni_seconds", "Time").observe(1.0)

    assert "_created" not in registry.render()


def test_a_histogram_without_values_has_no_samples() -> None:
    registry = Registry()
    histogram = registry.histogram("nni_seconds", "Time", (1.0,))
    before = parsed(registry)["nni_seconds"]
    histogram.observe(0.5)

    assert before == {}
    assert parsed(registry)["nni_seconds"]["nni_seconds_count", ()] == 1.0


def test_head_names_help_and_type_of_a_family() -> None:
    registry = Registry()
    registry.counter("nni_things_total", "Things")
    registry.gauge("nni_agents", "Agents", list)
    registry.histogram("nni_seconds", "Time", (1.0,))

    heads = [line for line in registry.render().splitlines() if line.startswith("#")]

    assert heads == [
        "# HELP nni_things_total Things",
        "# TYPE nni_things_total counter",
        "# HELP nni_agents Agents",
        "# TYPE nni_agents gauge",
        "# HELP nni_seconds Time",
        "# TYPE nni_seconds histogram",
    ]


@pytest.mark.parametrize("second", ["counter", "gauge", "histogram"])
def test_a_name_is_registered_once(second: str) -> None:
    registry = Registry()
    registry.gauge("nni_things_total", "Things", list)
    again: dict[str, Callable[[], object]] = {
        "counter": lambda: registry.counter("nni_things_total", "Things"),
        "gauge": lambda: registry.gauge("nni_things_total", "Things", list),
        "histogram": lambda: registry.histogram("nni_things_total", "Things"),
    }

    with pytest.raises(ValueError, match="nni_things_total"):
        again[second]()


def test_value_and_count_of_labels_never_used_are_zero() -> None:
    registry = Registry()

    assert registry.counter("nni_things_total", "Things", ("kind",)).value("a") == 0.0
    assert registry.histogram("nni_seconds", "Time", labels=("kind",)).count("a") == 0


def test_a_wrong_number_of_label_values_is_refused() -> None:
    registry = Registry()
    counter = registry.counter("nni_things_total", "Things", ("kind",))
    histogram = registry.histogram("nni_seconds", "Time", (1.0,))

    with pytest.raises(ValueError, match=r"nni_things_total has the labels \('kind',\)"):
        counter.inc()
    with pytest.raises(ValueError, match="nni_seconds has the labels"):
        histogram.observe(1.0, "a")


@pytest.mark.parametrize("known", [False, True])
def test_a_counter_never_falls(*, known: bool) -> None:
    counter = Registry().counter("nni_things_total", "Things", ("kind",))
    if known:
        counter.inc("a")

    with pytest.raises(ValueError, match="by must be >= 0, got -1"):
        counter.inc("a", by=-1)

    assert counter.value("a") == float(known)


def test_bounds_are_written_in_full() -> None:
    registry = Registry()
    registry.histogram("nni_seconds", "Time", (0.0005, 2.5, 10.0, 86400.0)).observe(3.0)

    buckets = [line for line in registry.render().splitlines() if "_bucket" in line]

    assert buckets == [
        'nni_seconds_bucket{le="0.0005"} 0.0',
        'nni_seconds_bucket{le="2.5"} 0.0',
        'nni_seconds_bucket{le="10"} 1.0',
        'nni_seconds_bucket{le="86400"} 1.0',
        'nni_seconds_bucket{le="+Inf"} 1.0',
    ]
