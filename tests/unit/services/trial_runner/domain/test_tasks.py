import pytest

from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.tasks import (
    GpuRules,
    TrialCheckpoint,
    TrialSpec,
    TrialWork,
    parse_gpu_rules,
)


def test_missing_options_have_their_defaults() -> None:
    assert parse_gpu_rules(None, None) == GpuRules(None, None, 1, False)


@pytest.mark.parametrize(
    ("indices", "expected"),
    [([0, 2], (0, 2)), ("0,2", (0, 2)), (1, (1,)), (None, None), ("", None)],
)
def test_indices_have_several_spellings(indices: object, expected: tuple[int, ...] | None) -> None:
    assert parse_gpu_rules(1, {"gpuIndices": indices}).allowed_indices == expected


def test_all_rules_are_read() -> None:
    options = {"maxTrialNumberPerGpu": 3, "useActiveGpu": True, "gpuIndices": [1]}

    assert parse_gpu_rules(2, options) == GpuRules(2, (1,), 3, True)


@pytest.mark.parametrize(("number", "trials"), [(-1, 1), (0, 1), (1, 1), (2, 2)])
def test_at_least_one_trial_uses_a_gpu(number: int, trials: int) -> None:
    assert parse_gpu_rules(1, {"maxTrialNumberPerGpu": number}).trials_per_gpu == trials


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="gpuIndices must be numbers"):
        parse_gpu_rules(1, {"gpuIndices": {"a": 1}})


def test_settings_that_a_task_does_not_name_have_their_defaults() -> None:
    spec = TrialSpec("true")

    assert spec.gpus == GpuRules(None, None, 1, False)
    assert (spec.grace_s, spec.time_limit_s, spec.output_limit_bytes) == (5.0, None, 0)
    assert not spec.checkpoints_travel
    assert not spec.outputs_travel


def test_task_without_a_position_of_the_log_has_the_first() -> None:
    work = TrialWork(AttemptKey("e1", "t1", 1), 0, 0, {}, "algorithm", TrialSpec("true"), b"")

    assert (work.log_sequence, work.traceparent) == (0, "")


def test_checkpoints_are_in_the_order_of_attempts_and_then_of_their_numbers() -> None:
    first, second, third = (TrialCheckpoint(0, *key) for key in ((1, 9), (2, 1), (2, 3)))

    found = sorted([third, first, second], key=lambda checkpoint: checkpoint.order)

    assert found == [first, second, third]
