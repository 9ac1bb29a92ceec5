import subprocess
import sys

import pytest

from nni.compression.job.description import JobDescription
from nni.compression.job.field_checks import JobError
from tests.support.compression_job import description


def test_defaults() -> None:
    fields = description()
    for name in ("schedule", "fine_tuning", "speedup"):
        del fields[name]

    job = JobDescription.of(fields)

    assert (job.schedule, job.iterations, job.max_steps, job.max_epochs) == ("agp", 1, None, None)
    assert (job.speedup, job.seed, job.weights) == (None, 0, None)
    assert job.model.kwargs == {}


def test_options_of_the_speedup() -> None:
    job = JobDescription.of(description(speedup={"allow_norm_change": True, "time_limit_s": 5}))

    assert job.speedup is not None
    assert (job.speedup.allow_norm_change, job.speedup.time_limit_s) == (True, 5.0)


def test_equal_jobs_have_equal_digests_whatever_the_order_of_their_fields() -> None:
    fields = description()

    assert (
        JobDescription.of(fields).digest == JobDescription.of(dict(reversed(fields.items()))).digest
    )
    assert JobDescription.of(fields).digest != JobDescription.of(description(seed=1)).digest


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"sped": 1}, "sped", "did you mean 'seed'"),
        ({"model": {}}, "model.factory", "is missing"),
        ({"model": {"factory": "net"}}, "model.factory", "package.module:function"),
        ({"model": {"factory": "../net:make"}}, "model.factory", "package.module:function"),
        ({"model": {"factory": "n:m", "weights": "x"}}, "model.weights", "64 hexadecimal"),
        ({"model": {"factory": "n:m", "kwargs": [1]}}, "model.kwargs", "named values"),
        ({"evaluator": {"factory": 3}}, "evaluator.factory", "got 3"),
        ({"config_list": []}, "config_list", "one or more entries"),
        ({"config_list": [3]}, "config_list[0]", "named values"),
        ({"algorithm": {"name": "../x"}}, "algorithm.name", "pruner's class"),
        ({"algorithm": {"name": "A", "argument": {}}}, "algorithm.argument", "'arguments'"),
        ({"schedule": {"name": "cubic"}}, "schedule.name", "agp, linear"),
        ({"schedule": {"name": ["agp"]}}, "schedule.name", "got ['agp']"),
        ({"schedule": {"iterations": 0}}, "schedule.iterations", "from 1 to"),
        ({"schedule": {"iterations": True}}, "schedule.iterations", "from 1 to"),
        ({"fine_tuning": {"max_steps": -1}}, "fine_tuning.max_steps", "got -1"),
        ({"speedup": {"time_limit_s": 0}}, "speedup.time_limit_s", "above 0"),
        ({"speedup": {"allow_norm_change": 1}}, "speedup.allow_norm_change", "true or false"),
        ({"seed": 1.5}, "seed", "got 1.5"),
        ({"evaluator": {"factory": "n:m", "kwargs": {"a": float("nan")}}}, "job", "JSON values"),
    ],
)
def test_a_bad_field_is_named_with_its_rule(
    changes: dict[str, object], field: str, problem: str
) -> None:
    with pytest.raises(JobError) as caught:
        JobDescription.of(description(**changes))

    assert caught.value.field == field
    assert problem in str(caught.value)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(JobError, match="config_list is missing"):
        JobDescription.of(dict.fromkeys(("model", "evaluator", "algorithm"), 1))


def test_a_list_is_no_job() -> None:
    with pytest.raises(JobError, match="job must be an object"):
        JobDescription.of([])


def test_descriptions_and_steps_are_read_without_torch() -> None:
    program = (
        "import sys, nni.compression.job.steps, nni.compression.job as job; job.JobDescription; "
        "assert not {'torch', 'numpy'} & set(sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert done.returncode == 0, done.stderr
