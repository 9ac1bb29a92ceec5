import itertools
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.ray_actors.cluster import ActorPlan, ActorState
from svc_trial_runner.fleet.adapters.ray_actors.demand import ClusterDemand, NodeResources
from svc_trial_runner.fleet.adapters.ray_actors.driver import (
    ActorRefusedError,
    RayDriver,
    cluster_demand,
    connection_error,
)
from svc_trial_runner.fleet.domain.agents import AgentPhase
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


class Package:
    """Package `ray` that creates no actor, and remembers with which options it was asked to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.options: dict[str, Any] = {}
        self.connected = False
        self.shut_down = 0
        self.cloudpickle = SimpleNamespace(register_pickle_by_value=lambda _: None)
        self.named: list[dict[str, str]] = []
        strategies = SimpleNamespace(
            PlacementGroupSchedulingStrategy=lambda group: f"strategy of {group}"
        )
        self.util = SimpleNamespace(
            list_named_actors=self._list,
            get_placement_group=lambda name: f"group {name}",
            scheduling_strategies=strategies,
        )

    def _list(self, *, all_namespaces: bool) -> list[dict[str, str]]:
        assert all_namespaces
        return self.named

    def is_initialized(self) -> bool:
        return self.connected

    def init(self, address: str, **options: object) -> None:
        assert (address, options["namespace"]) == ("auto", "nni")
        assert options["log_to_driver"] is False
        self.connected = True

    def shutdown(self) -> None:
        self.shut_down += 1

    def remote(self, kind: object) -> SimpleNamespace:
        def with_options(**options: Any) -> SimpleNamespace:
            self.options = options
            return SimpleNamespace(remote=self._create)

        return SimpleNamespace(options=with_options)

    def _create(self, fields: dict[str, Any]) -> str:
        if self.failure is not None:
            raise self.failure
        return str(fields["name"])


def plan(**changes: Any) -> ActorPlan:
    request = {"CPU": 2.0, "GPU": 1.0, "memory": 7.0, "special": 3.0}
    return replace(ActorPlan("a", request, "digest", "holder", "~/.nni", {}), **changes)


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Package:
    found = Package()
    monkeypatch.setitem(sys.modules, "ray", found)
    return found


async def test_actor_has_the_resources_and_options_of_its_plan(package: Package) -> None:
    driver = RayDriver("auto", "nni")

    await driver.create(plan(runtime_env={"pip": ["a"]}, scheduling_strategy="SPREAD"))
    await driver.aclose()

    assert package.options == {
        "name": "a",
        "namespace": "nni",
        "lifetime": "detached",
        "max_restarts": 0,
        "max_concurrency": 4,
        "num_cpus": 2.0,
        "num_gpus": 1.0,
        "memory": 7.0,
        "resources": {"special": 3.0},
        "runtime_env": {"pip": ["a"]},
        "scheduling_strategy": "SPREAD",
    }


async def test_actor_of_a_small_plan_asks_for_nothing(package: Package) -> None:
    driver = RayDriver("auto", "nni")

    await driver.create(plan(request={}))
    await driver.aclose()

    assert (package.options["num_cpus"], package.options["num_gpus"]) == (0, 0)
    assert {"memory", "resources", "runtime_env", "scheduling_strategy"}.isdisjoint(package.options)


async def test_placement_group_is_a_strategy(package: Package) -> None:
    driver = RayDriver("auto", "nni")

    await driver.create(plan(placement_group="mine"))
    await driver.aclose()

    assert package.options["scheduling_strategy"] == "strategy of group mine"


async def test_refused_actor_is_a_permanent_error_unless_one_of_its_name_exists(
    package: Package,
) -> None:
    package.failure = ValueError("no  such\nfield" + "a" * 600)
    driver = RayDriver("auto", "nni")

    with pytest.raises(ActorRefusedError) as caught:
        await driver.create(plan())
    package.named = [{"name": "a", "namespace": "other"}]
    with pytest.raises(ActorRefusedError):
        await driver.create(plan())
    package.named = [{"name": "a", "namespace": "nni"}]
    await driver.create(plan())
    await driver.aclose()

    assert caught.value.permanent
    assert caught.value.message == "no such field" + "a" * 487


async def test_connection_of_the_driver_is_closed_with_it(package: Package) -> None:
    driver = RayDriver("auto", "nni")
    await driver.connect()
    await driver.aclose()

    assert package.shut_down == 1


async def test_connection_of_the_process_is_left_open(package: Package) -> None:
    package.connected = True
    driver = RayDriver("auto", "nni")
    await driver.connect()
    await driver.aclose()

    assert package.shut_down == 0


async def test_failed_call_drops_the_connection(package: Package) -> None:
    driver = RayDriver("auto", "nni")
    package.failure = OSError("the head is away")

    with pytest.raises(PlatformError, match="Ray: the head is away"):
        await driver.create(plan())
    assert package.shut_down == 1
    await driver.aclose()

    assert package.shut_down == 1


def test_error_without_words_has_the_name_of_its_type() -> None:
    assert "by ray 2: KeyError" in connection_error(KeyError(), "a:1", "2").message


@pytest.mark.parametrize(
    ("version", "scales"), [("0", False), ("", False), (None, False), ("1", True)]
)
def test_version_of_the_autoscaler_says_whether_there_is_one(
    version: str | None, *, scales: bool
) -> None:
    found = cluster_demand(status(stats=SimpleNamespace(autoscaler_version=version)))

    assert found.has_autoscaler is scales


def test_idle_node_without_a_usage_has_nothing() -> None:
    node = SimpleNamespace(ip_address="10.0.0.2", resource_usage=None)

    found = cluster_demand(status(active_nodes=[], idle_nodes=[node]))

    assert found.nodes == (NodeResources("10.0.0.2", {}, {}),)


class Handle:
    """Handle of an actor, whose calls are references by name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = SimpleNamespace(remote=self._look)
        self.end = SimpleNamespace(remote=lambda grace_s: ("end", name, grace_s))
        self.looks = 0

    def _look(self) -> tuple[str, str, int]:
        self.looks += 1
        return ("state", self.name, self.looks)


class ActorPackage(Package):
    """Package `ray` with actors: those that are ready, those that do not reply, those that fail."""

    def __init__(self, **replies: tuple[str, str, str] | Exception | None) -> None:
        super().__init__()
        self.replies = replies
        self.handles = {name: Handle(name) for name in replies}
        self.named = [{"name": name, "namespace": "nni"} for name in replies]
        self.exceptions = SimpleNamespace(RayError=LookupError)
        self.killed: list[str] = []
        self.waits: list[tuple[list[Any], int, float]] = []

    def get_actor(self, name: str, namespace: str) -> Handle:
        assert namespace == "nni"
        if name not in self.handles:
            raise ValueError(name)
        return self.handles[name]

    def wait(
        self, references: list[Any], *, num_returns: int, timeout: float
    ) -> tuple[list[Any], list[Any]]:
        self.waits.append((references, num_returns, timeout))
        ready = [one for one in references if self.replies[one[1]] is not None]
        return ready, [one for one in references if one not in ready]

    def get(self, reference: tuple[str, str, int]) -> tuple[str, str, str]:
        reply = self.replies[reference[1]]
        if isinstance(reply, Exception):
            raise reply
        assert reply is not None
        return reply

    def kill(self, handle: Handle) -> None:
        self.killed.append(handle.name)


async def test_states_are_those_that_actors_report_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ActorPackage(
        a=("running", "node-1", ""),
        b=("starting", "node-2", ""),
        c=("ended", "node-1", "no  bus"),
        d=LookupError("the  actor\ndied"),
        e=None,
    )
    monkeypatch.setitem(sys.modules, "ray", package)
    driver = RayDriver("auto", "nni")

    first = await driver.states(["a", "b", "c", "d", "e", "gone"])
    again = await driver.states(["a", "e"])
    await driver.aclose()

    assert first == {
        "a": ActorState(AgentPhase.RUNNING, "node-1"),
        "b": ActorState(AgentPhase.STARTING, "node-2"),
        "c": ActorState(AgentPhase.ENDED, "node-1", "no  bus"),
        "d": ActorState(AgentPhase.ENDED, reason="the actor died"),
        "e": ActorState(AgentPhase.PENDING),
        "gone": ActorState(AgentPhase.ENDED, reason="its actor is gone"),
    }
    assert again == {"a": first["a"], "e": first["e"]}
    # A look that is not answered is waited for again instead of another one.
    assert (package.handles["a"].looks, package.handles["e"].looks) == (2, 1)
    assert [(len(one), count, limit_s) for one, count, limit_s in package.waits] == [
        (5, 5, 1.0), (2, 2, 1.0)
    ]  # fmt: skip


async def test_states_of_no_actors_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ActorPackage()
    monkeypatch.setitem(sys.modules, "ray", package)
    driver = RayDriver("auto", "nni")

    assert await driver.states([]) == {}
    await driver.aclose()

    assert package.waits == []


async def test_agents_that_reply_are_ended_before_their_actors_are_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package = ActorPackage(a=("running", "node-1", ""), b=None)
    package.named.append({"name": "c", "namespace": "other"})
    monkeypatch.setitem(sys.modules, "ray", package)
    driver = RayDriver("auto", "nni")

    await driver.end(["a", "b", "c", "gone"], 2.0)
    await driver.aclose()

    assert package.waits[-1] == ([("end", "a", 2.0)], 1, 62.0)
    assert package.killed == ["a", "b"]


async def test_names_are_those_of_the_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ActorPackage(a=None)
    package.named.append({"name": "b", "namespace": "other"})
    monkeypatch.setitem(sys.modules, "ray", package)
    driver = RayDriver("auto", "nni")

    assert await driver.names() == {"a"}
    await driver.aclose()


async def test_missing_package_is_a_permanent_error_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    driver = RayDriver("auto", "nni")

    with pytest.raises(PlatformError, match="needs a package that is not installed") as caught:
        await driver.connect()
    await driver.aclose()

    assert caught.value.permanent
    assert caught.value.remedy.startswith("pip install 'nni-svc-trial-runner[ray]'")


async def test_cluster_that_cannot_be_reached_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, package: Package
) -> None:
    def refuse(address: str, **options: object) -> None:
        raise ConnectionError("no head")

    monkeypatch.setattr(package, "__version__", "2.60.0", raising=False)
    driver = RayDriver("auto", "nni")
    with monkeypatch.context() as away:
        away.setattr(package, "init", refuse)
        with pytest.raises(PlatformError, match=r"cannot be reached by ray 2\.60\.0: no head"):
            await driver.connect()

    await driver.connect()
    await driver.aclose()

    assert package.shut_down == 1
