import pytest

from svc_trial_runner.domain.gpus import (
    Allotment,
    GpuDevice,
    GpuRequest,
    Holder,
    Wait,
    allot,
    cuda_visible_devices,
)

TWO = [GpuDevice(0, "a", 1), GpuDevice(1, "b", 1)]


def request(count: int | None = 1, **rules: object) -> GpuRequest:
    return GpuRequest("exp", "new", count, **rules)  # type: ignore[arg-type] # rules of one test


def test_no_number_means_no_assignment() -> None:
    assert allot(request(None), TWO, [], {}) == Allotment(None)


def test_zero_hides_gpus() -> None:
    assert allot(request(0), [], [], {}) == Allotment(())


def test_free_gpu_with_the_lowest_index_is_given() -> None:
    assert allot(request(), TWO, [], {}) == Allotment((0,))


def test_gpu_in_use_by_the_same_experiment_is_not_given_again() -> None:
    holders = [Holder("exp", "old", (0,))]

    assert allot(request(), TWO, holders, {}) == Allotment((1,))


def test_trial_waits_when_all_are_in_use() -> None:
    holders = [Holder("exp", "one", (0,)), Holder("exp", "two", (1,))]

    answer = allot(request(), TWO, holders, {})

    assert answer == Wait("waiting for 1 GPU: 0 in use by trial one, 1 in use by trial two")


@pytest.mark.claim("platform", 79)
@pytest.mark.parametrize(("per_gpu", "given"), [(1, False), (2, True)])
def test_trials_per_gpu_bound_sharing(per_gpu: int, given: bool) -> None:
    holders = [Holder("exp", "old", (0,))]

    answer = allot(request(trials_per_gpu=per_gpu), TWO[:1], holders, {})

    assert isinstance(answer, Allotment) is given


def test_least_used_gpu_is_shared_first() -> None:
    holders = [Holder("exp", "one", (0,)), Holder("exp", "two", (0,)), Holder("exp", "x", (1,))]

    assert allot(request(trials_per_gpu=3), TWO, holders, {}) == Allotment((1,))


def test_active_gpu_is_given_only_if_allowed() -> None:
    active = {0: "process 7", 1: "process 8"}

    assert allot(request(), TWO, [], active) == Wait(
        "waiting for 1 GPU: 0 in use by process 7, 1 in use by process 8"
    )
    assert allot(request(use_active=True), TWO, [], active) == Allotment((0,))


def test_gpu_of_another_experiment_counts_as_active() -> None:
    holders = [Holder("other", "old", (0,))]

    assert allot(request(), TWO, holders, {}) == Allotment((1,))
    assert isinstance(allot(request(), TWO[:1], holders, {}), Wait)
    assert allot(request(use_active=True), TWO[:1], holders, {}) == Allotment((0,))


def test_only_allowed_indices_are_given() -> None:
    assert allot(request(allowed_indices=(1,)), TWO, [], {}) == Allotment((1,))


def test_request_beyond_the_machine_is_hopeless() -> None:
    assert allot(request(3), TWO, [], {}) == Wait(
        "waiting for 3 GPUs: this machine has 2", hopeless=True
    )
    assert allot(request(allowed_indices=(5,)), TWO, [], {}) == Wait(
        "waiting for 1 GPU: this machine has 0 among those allowed by gpuIndices", hopeless=True
    )


@pytest.mark.claim("platform", 36)
@pytest.mark.parametrize(
    ("indices", "value"), [(None, None), ((), ""), ((1,), "1"), ((0, 2), "0,2")]
)
def test_visible_devices_name_what_was_given(
    indices: tuple[int, ...] | None, value: str | None
) -> None:
    assert cuda_visible_devices(Allotment(indices)) == value
