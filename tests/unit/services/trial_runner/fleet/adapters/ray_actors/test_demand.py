import pytest

from svc_trial_runner.fleet.adapters.ray_actors.demand import (
    ClusterDemand,
    NodeResources,
    missing_resources,
    pending_reason,
    resource_words,
    visible_resources,
)

GIBIBYTE = 1024.0**3
IDLE = NodeResources("10.0.0.1", {"CPU": 4.0, "memory": 8 * GIBIBYTE}, {})
BUSY = NodeResources("10.0.0.2", {"CPU": 8.0, "GPU": 1.0}, {"CPU": 8.0, "GPU": 1.0})


def test_actor_that_fits_is_starting() -> None:
    assert pending_reason({"CPU": 2.0}, ClusterDemand((IDLE,))) == (
        "Ray is starting the actor (2 CPU)"
    )


def test_actor_that_asks_for_nothing_is_starting() -> None:
    assert pending_reason({}, ClusterDemand((BUSY,))) == "Ray is starting the actor (no resources)"


def test_busy_nodes_are_named_with_their_use() -> None:
    reason = pending_reason({"CPU": 6.0}, ClusterDemand((IDLE, BUSY)))

    assert reason == "no node has 6 CPU free now: 8 of 12 CPU used"


def test_request_beyond_each_node_is_named_with_the_largest() -> None:
    reason = pending_reason({"CPU": 2.0, "GPU": 4.0}, ClusterDemand((IDLE, BUSY)))

    assert reason == "no node has 2 CPU, 4 GPU: the most of one node is 8 CPU, 1 GPU"


def test_cluster_without_a_node_is_named() -> None:
    assert pending_reason({"CPU": 1.0}, ClusterDemand(())).endswith("no node is alive")


def test_nodes_that_the_autoscaler_starts_are_part_of_the_reason() -> None:
    demand = ClusterDemand((IDLE,), has_autoscaler=True, starting=("gpu", "gpu"))

    assert pending_reason({"GPU": 1.0}, demand).endswith(
        "; the autoscaler is starting 2 nodes (gpu)"
    )


def test_failure_of_the_autoscaler_is_part_of_the_reason() -> None:
    demand = ClusterDemand((IDLE,), has_autoscaler=True, failures=("no quota for gpu",))

    assert "the autoscaler has failed: no quota for gpu" in pending_reason({"GPU": 1.0}, demand)


def test_autoscaler_that_starts_nothing_is_named() -> None:
    demand = ClusterDemand((IDLE,), has_autoscaler=True)

    assert pending_reason({"GPU": 1.0}, demand).endswith("the autoscaler starts no node for it")


def test_request_that_no_node_has_is_a_problem_that_may_go_away() -> None:
    problems = missing_resources({"CPU": 1.0, "GPU": 2.0}, ClusterDemand((IDLE, BUSY)))

    assert [(problem.field, problem.permanent) for problem in problems] == [("numGpus", False)]
    assert "1 GPU" in problems[0].remedy


def test_request_that_only_no_single_node_has_is_a_problem() -> None:
    split = ClusterDemand((IDLE, NodeResources("10.0.0.3", {"GPU": 1.0}, {})))

    problems = missing_resources({"CPU": 1.0, "GPU": 1.0}, split)

    assert [problem.field for problem in problems] == ["resources"]


@pytest.mark.parametrize(
    ("resource", "field"),
    [("CPU", "numCpus"), ("GPU", "numGpus"), ("memory", "memory"), ("TPU", "resources")],
)
def test_problem_names_the_option_of_the_missing_resource(resource: str, field: str) -> None:
    (problem,) = missing_resources({resource: 1e12}, ClusterDemand((IDLE,)))

    assert problem.field == field


def test_autoscaler_may_add_what_no_node_has() -> None:
    demand = ClusterDemand((IDLE,), has_autoscaler=True)

    assert missing_resources({"GPU": 1.0}, demand) == []


def test_memory_is_shown_in_gibibytes() -> None:
    assert resource_words({"memory": 16 * GIBIBYTE}) == "16 GiB memory"


def test_resources_of_nodes_and_of_the_object_store_are_hidden() -> None:
    amounts = {"CPU": 1.0, "node:10.0.0.1": 1.0, "object_store_memory": 7.0}

    assert visible_resources(amounts) == {"CPU": 1.0}


@pytest.mark.parametrize(("cpus", "fits"), [(3.0, True), (3.5, False)])
def test_node_has_room_for_what_is_not_used(cpus: float, *, fits: bool) -> None:
    node = NodeResources("10.0.0.1", {"CPU": 4.0}, {"CPU": 1.0})

    assert node.has_free({"CPU": cpus}) is fits
    assert node.has({"CPU": cpus}) is True


def test_idle_node_has_room_for_all_of_it_and_for_nothing_that_it_lacks() -> None:
    assert IDLE.has_free({"CPU": 4.0})
    assert not IDLE.has({"CPU": 4.5})
    assert not IDLE.has({"GPU": 0.5})
    assert not IDLE.has_free({"GPU": 0.5})


def test_resource_that_some_nodes_lack_is_counted_on_the_others() -> None:
    demand = ClusterDemand((IDLE, BUSY))

    assert pending_reason({"GPU": 1.0}, demand) == ("no node has 1 GPU free now: 1 of 1 GPU used")
    assert pending_reason({"GPU": 1.0}, ClusterDemand((IDLE,))) == (
        "no node has 1 GPU: the most of one node is 0 GPU"
    )


def test_last_failure_of_the_autoscaler_is_shown_by_300_characters() -> None:
    demand = ClusterDemand((IDLE,), has_autoscaler=True, failures=("first", "a" * 400))

    reason = pending_reason({"GPU": 1.0}, demand)

    assert reason.endswith(f"; the autoscaler has failed: {'a' * 300}")


def test_missing_resource_that_is_not_the_first_one_is_named() -> None:
    (problem,) = missing_resources({"CPU": 1.0, "GPU": 1.0, "TPU": 1.0}, ClusterDemand((IDLE,)))

    assert problem.field == "numGpus"
    assert missing_resources({"CPU": 4.0}, ClusterDemand((IDLE,))) == []


def test_nodes_that_start_are_counted_and_their_types_named_once() -> None:
    demand = ClusterDemand((IDLE,), has_autoscaler=True, starting=("b", "a", "b"), failures=("no",))

    assert pending_reason({"GPU": 1.0}, demand) == (
        "no node has 1 GPU: the most of one node is 0 GPU"
        "; the autoscaler is starting 3 nodes (a, b); the autoscaler has failed: no"
    )


def test_use_is_counted_over_all_nodes_for_each_resource() -> None:
    half = NodeResources("10.0.0.4", {"CPU": 4.0, "GPU": 2.0}, {"CPU": 1.5, "GPU": 2.0})

    assert pending_reason({"CPU": 4.0, "GPU": 1.0}, ClusterDemand((half, BUSY))) == (
        "no node has 4 CPU, 1 GPU free now: 9.5 of 12 CPU used, 3 of 3 GPU used"
    )


def test_missing_resource_is_shown_with_the_request_and_the_largest_node() -> None:
    (problem,) = missing_resources(
        {"CPU": 1.0, "memory": 32 * GIBIBYTE}, ClusterDemand((IDLE, BUSY))
    )

    assert (problem.field, problem.rule) == ("memory", "must be what one node has")
    assert problem.value == "1 CPU, 32 GiB memory"
    assert problem.remedy == (
        "the most of one node is 8 CPU, 8 GiB memory; add a node, or ask for less"
    )


def test_cluster_without_nodes_lacks_the_first_resource() -> None:
    (problem,) = missing_resources({"GPU": 1.0, "CPU": 1.0}, ClusterDemand(()))

    assert (problem.field, problem.remedy) == (
        "numGpus", "no node is alive; add a node, or ask for less"
    )  # fmt: skip


def test_request_for_nothing_lacks_a_node() -> None:
    (problem,) = missing_resources({}, ClusterDemand(()))

    assert (problem.field, problem.value) == ("resources", "no resources")
