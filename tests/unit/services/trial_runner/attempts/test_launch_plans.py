import errno
import io
import json
import os
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from svc_common.clock import SystemClock
from svc_common.storage.code_archives import CodeArchives
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.shared_storage import OUTPUT_FOLDER as SHARED_OUTPUTS
from svc_trial_runner.adapters.code_archives import CachedCodeStore
from svc_trial_runner.adapters.environments import FileEnvironments
from svc_trial_runner.attempts import launch_plans
from svc_trial_runner.attempts.launch_plans import LaunchPlan, LaunchPlans
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.tasks import BlobKey, TrialSpec, TrialWork
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


async def test_code_directory_that_cannot_be_entered_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plans(tmp_path)
    await made.plan(work(tmp_path))
    stat = os.stat

    def refuse(path: str, *more: object, **options: Any) -> os.stat_result:
        # As for the owner of a folder with mode 0600; root may enter it.
        if str(path).startswith(f"{tmp_path}/"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return stat(path, *more, **options)

    monkeypatch.setattr(os, "stat", refuse)

    with pytest.raises(LaunchError, match=f"{tmp_path} cannot be entered"):
        await made.plan(work(tmp_path))


async def test_script_that_is_gone_is_missed_though_its_folder_is_there(tmp_path: Path) -> None:
    made = plans(tmp_path)
    plan = await plan_of_script(made, tmp_path)
    (tmp_path / "t.py").touch()
    assert await made.folder(plan, "") == str(tmp_path)

    (tmp_path / "t.py").unlink()

    with pytest.raises(LaunchError, match=r"the script .*/t\.py is gone"):
        await made.folder(plan, "")
    (tmp_path / "t.py").touch()
    assert await made.folder(plan, "") == str(tmp_path)


async def test_script_that_was_never_there_is_left_to_the_trial(tmp_path: Path) -> None:
    made = plans(tmp_path)
    plan = await plan_of_script(made, tmp_path)

    assert await made.folder(plan, "") == str(tmp_path)


async def plan_of_script(made: LaunchPlans, folder: Path) -> LaunchPlan:
    """Return the plan of a command with a script `t.py`, whose interpreter is there."""
    spec = TrialSpec(command=f"{sys.executable} t.py", code_directory=str(folder))
    return await made.plan(replace(work(folder), spec=spec))


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


async def test_oldest_plan_is_dropped_beyond_the_number_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_plans, "_PLANS_KEPT", 2)
    made = plans(tmp_path)
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        await made.plan(work(tmp_path / name, name))

    assert made.forget("one") == []
    assert made.forget("two") == [str(tmp_path / "two")]
    assert made.forget("three") == [str(tmp_path / "three")]


async def test_plans_of_64_experiments_are_kept(tmp_path: Path) -> None:
    made = plans(tmp_path)
    for number in range(65):
        (tmp_path / f"{number}").mkdir()
        await made.plan(work(tmp_path / f"{number}", f"e{number}"))

    assert made.forget("e0") == []
    assert made.forget("e1") == [str(tmp_path / "1")]


async def test_code_directory_that_was_removed_is_missed_though_its_plan_is_known(
    tmp_path: Path,
) -> None:
    made = plans(tmp_path)
    (tmp_path / "code-of-one").mkdir()
    await made.plan(work(tmp_path / "code-of-one"))
    (tmp_path / "code-of-one").rmdir()

    with pytest.raises(LaunchError, match="does not exist"):
        await made.plan(work(tmp_path / "code-of-one"))


class MountedFolder:
    """Shared storage that counts how often it was needed."""

    needed = 0

    async def ensure(self) -> None:
        self.needed += 1


async def test_shared_storage_is_mounted_for_each_trial_and_has_the_outputs(tmp_path: Path) -> None:
    storage = MountedFolder()
    code = CachedCodeStore(CodeArchives(InMemoryBlobStore(), tmp_path / "code", SystemClock()))
    environments = FileEnvironments({"PATH": "/bin"}, "/py/bin/python3")
    made = LaunchPlans(code, environments, tmp_path / "tools", tmp_path / "root", storage)

    found = [await made.plan(work(tmp_path)) for _ in range(2)]

    assert storage.needed == 2
    assert found[0] is found[1]
    assert found[0].output_folder == SHARED_OUTPUTS
    assert (await plans(tmp_path).plan(work(tmp_path))).output_folder == ""


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python3.99 t.py", r"there is no interpreter python3\.99 in PATH=.*/tools"),
        ("/nowhere/python3 t.py", r"there is no interpreter /nowhere/python3\Z"),
        ("./python3 t.py", r"there is no interpreter \./python3\Z"),
        ("bin/python3 t.py", None),
        ("true", None),
    ],
)
async def test_interpreter_is_looked_for_where_the_trial_would_find_it(
    tmp_path: Path, command: str, message: str | None
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").touch(0o755)
    made, task = plans(tmp_path), work(tmp_path)
    plan = await made.plan(replace(task, spec=replace(task.spec, command=command)))

    if message is None:
        assert await made.folder(plan, str(tmp_path / "trial")) == str(tmp_path)
        return
    with pytest.raises(LaunchError, match=message):
        await made.folder(plan, str(tmp_path / "trial"))


async def test_each_trial_has_a_copy_of_code_that_came_as_an_archive(tmp_path: Path) -> None:
    content, blobs = io.BytesIO(), InMemoryBlobStore()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("t.sh"), io.BytesIO())
    key = (await blobs.put(content.getvalue())).removeprefix("sha256/")
    made = LaunchPlans(
        CachedCodeStore(CodeArchives(blobs, tmp_path / "cache", SystemClock())),
        FileEnvironments({"PATH": "/bin"}, "/py/bin/python3"),
        tmp_path / "tools",
        tmp_path / "root",
    )
    spec = TrialSpec(command="sh t.sh", code_archive=BlobKey(key, len(content.getvalue())))

    plan = await made.plan(replace(work(tmp_path), spec=spec))
    (tmp_path / "trial").mkdir()
    folder = await made.folder(plan, str(tmp_path / "trial"))

    assert plan.code_directory == str(tmp_path / "cache" / key)
    assert folder == str(tmp_path / "trial" / "code")
    assert [path.name for path in Path(folder).iterdir()] == ["t.sh"]


async def test_plan_is_made_anew_when_the_environment_of_the_client_has_changed(
    tmp_path: Path,
) -> None:
    made, file = plans(tmp_path), tmp_path / "environment.json"
    spec = TrialSpec(
        "true",
        code_directory=str(tmp_path),
        environment_file=str(file),
        environment={"OF_THE_TRIAL": "1"},
    )
    found = []
    for number in ("1", "22"):
        file.write_text(json.dumps({"environment": {"OF_THE_CLIENT": number}}))
        plan = await made.plan(replace(work(tmp_path), spec=spec))
        found.append((plan.base["OF_THE_CLIENT"], plan.base["OF_THE_TRIAL"]))

    assert found == [("1", "1"), ("22", "1")]


async def test_trial_without_code_runs_at_the_root(tmp_path: Path) -> None:
    made = plans(tmp_path)

    plan = await made.plan(replace(work(tmp_path), spec=TrialSpec("true")))

    assert (plan.code_directory, plan.copied, plan.output_folder) == ("/", False, "")
    assert await made.folder(plan, str(tmp_path / "trial")) == "/"


async def test_folder_of_the_spec_is_that_of_the_experiment(tmp_path: Path) -> None:
    spec = TrialSpec("true", experiment_directory=str(tmp_path / "chosen"))

    plan = await plans(tmp_path).plan(replace(work(tmp_path), spec=spec))

    assert plan.experiment_directory == str(tmp_path / "chosen")
    assert plan.python is None
