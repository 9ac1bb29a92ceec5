import pytest

from nni.compression.job.description import JobDescription
from nni.compression.job.steps import (
    Step,
    all_steps,
    improvements_after,
    ratio_factor,
    step_of,
)
from tests.support.compression_job import description


def test_iterations_come_before_the_speedup() -> None:
    job = JobDescription.of(description(schedule={"iterations": 2}))

    assert [step_of(job, done) for done in range(4)] == [
        Step(1, "prune"),
        Step(2, "prune"),
        Step(3, "speedup"),
        None,
    ]


def test_without_speedup_the_last_iteration_is_the_last_step() -> None:
    job = JobDescription.of(description(schedule={"iterations": 2}, speedup=False))

    assert step_of(job, 2) is None


def test_all_that_is_asked_for_follows_the_speedup() -> None:
    job = JobDescription.of(
        description(
            schedule={"iterations": 1},
            speedup={"fine_tuning": {"max_steps": 5}},
            quantization={"name": "QATQuantizer", "fine_tuning": {"max_epochs": 1}},
            export=True,
        )
    )

    steps = all_steps(job)
    assert [step.kind for step in steps] == ["prune", "speedup", "fine_tune", "quantize", "export"]
    assert improvements_after(job, steps[1]) == [
        {"metric"},
        {"metric"},
        {"size_bytes", "latency_ms"},
    ]


def test_a_quantizer_without_training_improves_nothing() -> None:
    job = JobDescription.of(description(schedule={"iterations": 1}, quantization=True))

    assert improvements_after(job, Step(2, "speedup")) == [frozenset()]


@pytest.mark.parametrize("schedule", ["agp", "linear"])
def test_ratios_grow_to_the_final_ones(schedule: str) -> None:
    job = JobDescription.of(description(schedule={"name": schedule, "iterations": 7}))

    parts = [ratio_factor(job.schedule, number, 7) for number in range(1, 8)]

    assert parts == sorted(parts)
    assert parts[0] > 0
    assert parts[-1] == 1
