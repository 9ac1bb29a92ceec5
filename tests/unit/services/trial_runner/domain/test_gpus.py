import pytest

from svc_common.experiment_events.causes import GpuUser, WaitCause, WaitReason
from svc_trial_runner.domain.gpus import (
    GpuAllocation,
    GpuDevice,
    GpuHolder,
    GpuRequest,
    MachineGpuRules,
    allocate,
    cuda_visible_devices,
    parse_visible_devices,
)

TWO = [GpuDevice(0, "a", 1), GpuDevice(1, "b", 1)]


def request(count: int | None = 1, **rules: object) -> GpuRequest:
    return GpuRequest("exp", "new", count, **rules)  # type: ignore[arg-type] # rules of one test


def test_no_number_means_no_assignment() -> None:
    assert allocate(request(None), TWO, [], {}) == GpuAllocation(None)


def test_zero_hides_gpus() -> None:
    assert allocate(request(0), [], [], {}) == GpuAllocation(())


def test_free_gpu_with_the_lowest_index_is_given() -> None:
    assert allocate(request(), TWO, [], {}) == GpuAllocation((0,))


def test_gpu_in_use_by_the_same_experiment_is_not_given_again() -> None:
    holders = [GpuHolder("exp", "old", (0,))]

    assert allocate(request(), TWO, holders, {}) == GpuAllocation((1,))


def test_trial_waits_when_all_are_in_use() -> None:
    holders = [GpuHolder("exp", "one", (0,)), GpuHolder("exp", "two", (1,))]

    answer = allocate(request(), TWO, holders, {})

    assert answer == WaitReason(
        WaitCause.GPU_IN_USE,
        gpu_count=1,
        users=(GpuUser(0, trial_ids=("one",)), GpuUser(1, trial_ids=("two",))),
    )


@pytest.mark.claim("platform", 79)
@pytest.mark.parametrize(("per_gpu", "given"), [(1, False), (2, True)])
def test_trials_per_gpu_bound_sharing(per_gpu: int, given: bool) -> None:
    holders = [GpuHolder("exp", "old", (0,))]

    answer = allocate(request(trials_per_gpu=per_gpu), TWO[:1], holders, {})

    assert isinstance(answer, GpuAllocation) is given


def test_least_used_gpu_is_shared_first() -> None:
    holders = [
        GpuHolder("exp", "one", (0,)),
        GpuHolder("exp", "two", (0,)),
        GpuHolder("exp", "x", (1,)),
    ]

    assert allocate(request(trials_per_gpu=3), TWO, holders, {}) == GpuAllocation((1,))


def test_active_gpu_is_given_only_if_allowed() -> None:
    active = {0: "process 7", 1: "process 8"}

    assert allocate(request(), TWO, [], active) == WaitReason(
        WaitCause.GPU_IN_USE,
        gpu_count=1,
        users=(GpuUser(0, process="process 7"), GpuUser(1, process="process 8")),
    )
    assert allocate(request(use_active=True), TWO, [], active) == GpuAllocation((0,))


def test_gpu_of_another_experiment_counts_as_active() -> None:
    holders = [GpuHolder("other", "old", (0,))]

    assert allocate(request(), TWO, holders, {}) == GpuAllocation((1,))
    assert allocate(request(), TWO[:1], holders, {}) == WaitReason(
        WaitCause.GPU_IN_USE, gpu_count=1, users=(GpuUser(0, experiment_id="other"),)
    )
    assert allocate(request(use_active=True), TWO[:1], holders, {}) == GpuAllocation((0,))


def test_only_allowed_indices_are_given() -> None:
    assert allocate(request(allowed_indices=(1,)), TWO, [], {}) == GpuAllocation((1,))


def test_request_beyond_the_machine_is_hopeless() -> None:
    assert allocate(request(3), TWO, [], {}) == WaitReason(
        WaitCause.GPU_MISSING, gpu_count=3, gpu_available=2
    )
    assert allocate(request(allowed_indices=(5,)), TWO, [], {}) == WaitReason(
        WaitCause.GPU_MISSING, gpu_count=1, gpu_restricted=True
    )


@pytest.mark.claim("platform", 36)
@pytest.mark.parametrize(
    ("indices", "value"), [(None, None), ((), ""), ((1,), "1"), ((0, 2), "0,2")]
)
def test_visible_devices_name_what_was_given(
    indices: tuple[int, ...] | None, value: str | None
) -> None:
    assert cuda_visible_devices(GpuAllocation(indices)) == value


def test_rules_of_the_machine_come_before_those_of_the_experiment() -> None:
    asked = request(allowed_indices=(0,), trials_per_gpu=3, use_active=False)
    rules = MachineGpuRules(allowed_indices=(1,), use_active=True, trials_per_gpu=2)

    assert rules.applied_to(asked) == request(
        allowed_indices=(1,), trials_per_gpu=2, use_active=True
    )


def test_machine_without_rules_leaves_those_of_the_experiment() -> None:
    asked = request(allowed_indices=(0,), trials_per_gpu=3, use_active=True)

    assert MachineGpuRules().applied_to(asked) == asked


@pytest.mark.parametrize(
    ("text", "indices"),
    [("0,2", (0, 2)), (" 3 ", (3,)), ("", None), ("GPU-8e2a", None), ("NoDevFiles", None)],
)
def test_devices_of_a_job_are_known_by_their_indices(
    text: str, indices: tuple[int, ...] | None
) -> None:
    assert parse_visible_devices(text) == indices


def test_trial_in_its_first_attempt_does_not_come_before_others() -> None:
    assert not request().retried


def test_first_of_several_other_experiments_on_a_gpu_is_named() -> None:
    holders = [GpuHolder(name, "old", (0,)) for name in ("first", "second")]

    assert allocate(request(), TWO[:1], holders, {}) == WaitReason(
        WaitCause.GPU_IN_USE, gpu_count=1, users=(GpuUser(0, experiment_id="first"),)
    )
