import itertools
import sys
from types import SimpleNamespace

import pytest

from svc_trial_runner.fleet.adapters.ray_actors.demand import ClusterDemand, NodeResources
from svc_trial_runner.fleet.adapters.ray_actors.driver import (
    RayDriver,
    cluster_demand,
    connection_error,
)
from svc_trial_runner.fleet.ports import PlatformError


def status(**changes: object) -> SimpleNamespace:
    """Return a status as Ray has it, of a cluster with one node."""
    usage = [
        SimpleNamespace(resource_name="CPU", total=4.0, used=1.0),
        SimpleNamespace(resource_name="node:10.0.0.1", total=1.0, used=0.0),
    ]
    node = SimpleNamespace(ip_address="10.0.0.1", resource_usage=SimpleNamespace(usage=usage))
    fields: dict[str, object] = {
        "active_nodes": [node],
        "idle_nodes": [],
        "pending_launches": [],
        "pending_nodes": [],
        "failed_launches": [],
        "stats": SimpleNamespace(autoscaler_version="0"),
    }
    return SimpleNamespace(**{**fields, **changes})


def test_nodes_have_their_visible_resources() -> None:
    demand = cluster_demand(status())

    assert demand == ClusterDemand((NodeResources("10.0.0.1", {"CPU": 4.0}, {"CPU": 1.0}),))


def test_nodes_that_the_autoscaler_starts_are_counted() -> None:
    demand = cluster_demand(
        status(
            pending_launches=[
                SimpleNamespace(instance_type_name="", ray_node_type_name="gpu", count=2)
            ],
            pending_nodes=[SimpleNamespace(instance_type_name="p3", ray_node_type_name="gpu")],
            failed_launches=[SimpleNamespace(details="no quota")],
            stats=SimpleNamespace(autoscaler_version="7"),
        )
    )

    assert demand.has_autoscaler
    assert demand.starting == ("gpu", "gpu", "p3")
    assert demand.failures == ("no quota",)


def test_other_versions_of_ray_or_python_are_a_permanent_error_with_a_remedy() -> None:
    error = RuntimeError(
        "Version mismatch: The cluster was started with:\n    Ray: 2.9.0\n    Python: 3.9.18\n"
        "This process on node 10.0.0.1 was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\n"
    )

    found = connection_error(error, "10.0.0.1:6379", "2.60.0")

    assert found.permanent
    assert "Ray: 2.9.0 Python: 3.9.18" in found.message
    assert "install the cluster's version of ray" in found.remedy


def test_head_that_is_away_may_come_back() -> None:
    found = connection_error(ConnectionError("Could not read"), "10.0.0.1:6379", "2.60.0")

    assert not found.permanent
    assert "10.0.0.1:6379 cannot be reached" in found.message
    assert "ray start --head" in found.remedy


async def test_actor_is_looked_up_anew_after_one_of_its_name_was_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = itertools.count(1)
    killed: list[str] = []
    package = SimpleNamespace(
        is_initialized=lambda: True,
        cloudpickle=SimpleNamespace(register_pickle_by_value=lambda _: None),
        get_actor=lambda name, namespace: f"{namespace}/{name}/{next(numbers)}",
        kill=killed.append,
    )
    monkeypatch.setitem(sys.modules, "ray", package)
    driver = RayDriver("auto", "nni")

    await driver.kill(["bundle"])
    await driver.kill(["bundle"])

    assert killed == ["nni/bundle/1", "nni/bundle/2"]
    await driver.aclose()


async def test_driver_that_never_connected_is_closed_twice() -> None:
    driver = RayDriver("127.0.0.1:1", "nni")

    await driver.aclose()
    await driver.aclose()

    with pytest.raises((PlatformError, RuntimeError)):
        await driver.names()
