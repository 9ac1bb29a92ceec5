from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.clock import SystemClock
from svc_common.storage.code_archives import CodeArchives
from svc_common.storage.memory import InMemoryBlobStore
from svc_trial_runner.adapters.code_archives import CachedCodeStore
from svc_trial_runner.adapters.environments import FileEnvironments
from svc_trial_runner.attempts.launch_plans import LaunchPlans
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.tasks import TrialSpec, TrialWork
from svc_trial_runner.ports import LaunchError


def plans(folder: Path) -> LaunchPlans:
    return LaunchPlans(
        CachedCodeStore(CodeArchives(InMemoryBlobStore(), folder / "code", SystemClock())),
        FileEnvironments({"PATH": "/bin"}, "/py/bin/python3"),
        folder / "tools",
        folder / "root",
    )


def work(folder: Path, experiment_id: str = "exp") -> TrialWork:
    spec = TrialSpec(command="python t.py", code_directory=str(folder))
    key = AttemptKey(experiment_id, "aaaaa", 1)
    return TrialWork(key, 0, 0, {}, "", spec, b"digest")


async def test_plan_is_made_once_for_equal_specs(tmp_path: Path) -> None:
    made = plans(tmp_path)

    first = await made.plan(work(tmp_path))

    assert await made.plan(work(tmp_path)) is first
    assert first.python is not None
    assert first.base["PATH"] == f"{tmp_path}/tools:/py/bin:/bin"


async def test_other_spec_has_another_plan(tmp_path: Path) -> None:
    made = plans(tmp_path)
    first = await made.plan(work(tmp_path))

    other = replace(work(tmp_path), spec_digest=b"other", spec=TrialSpec("true", str(tmp_path)))

    assert (await made.plan(other)).command == "true"
    assert (await made.plan(work(tmp_path))) is first


async def test_agent_chooses_a_folder_where_the_spec_does_not(tmp_path: Path) -> None:
    plan = await plans(tmp_path).plan(work(tmp_path))

    assert plan.experiment_directory == str(tmp_path / "root/exp")


async def test_missing_code_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="gone does not exist"):
        await plans(tmp_path).plan(work(tmp_path / "gone"))


async def test_forgetting_returns_the_code_without_users(tmp_path: Path) -> None:
    made = plans(tmp_path)
    await made.plan(work(tmp_path, "one"))
    await made.plan(work(tmp_path, "two"))

    assert made.forget("one") == []
    assert made.forget("two") == [str(tmp_path)]
    assert made.forget("two") == []


async def test_interpreter_that_was_removed_is_missed_though_it_was_found_before(
    tmp_path: Path,
) -> None:
    interpreter = tmp_path / "python3"
    interpreter.touch(0o755)
    made = plans(tmp_path)
    task = work(tmp_path)
    plan = await made.plan(
        replace(task, spec=replace(task.spec, command=f"{tmp_path}/python3 t.py"))
    )
    assert plan.python is not None
    first = await made.folder(plan, str(tmp_path / "trial"))
    interpreter.unlink()

    with pytest.raises(LaunchError, match="there is no interpreter"):
        await made.folder(plan, str(tmp_path / "trial"))

    assert first == str(tmp_path)
