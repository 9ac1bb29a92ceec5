"""Script of a batch job."""

import subprocess
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.slurm.job_names import JobOrder
from svc_trial_runner.fleet.adapters.slurm.job_script import (
    FOLDER_MISSING,
    ScriptPaths,
    job_resources,
    lifetime_s,
    write_job_script,
)
from svc_trial_runner.fleet.adapters.slurm.options import SlurmOptions
from svc_trial_runner.fleet.domain.agents import AgentCredentials, AgentName, AgentOrder


def job(*numbers: int, slots: int = 1, gpus: int | None = None) -> JobOrder:
    credentials = AgentCredentials("bus-user", "bus-password", "manager-token")
    return JobOrder(
        tuple(
            AgentOrder(
                AgentName("0123abcd", "exp-a", number), credentials, slots, gpus_per_trial=gpus
            )
            for number in numbers
        )
    )


def paths(base: Path) -> ScriptPaths:
    return ScriptPaths(str(base), str(base / "logs"), "d1g35t", "python3")


def script(options: SlurmOptions, one: JobOrder, base: str = "/home/ann/.nni") -> list[str]:
    return write_job_script(options, one, paths(Path(base))).splitlines()


def test_options_of_the_section_are_options_of_the_job() -> None:
    options = SlurmOptions(
        partition="gpu",
        account="lab",
        qos="high",
        time_limit="90m",
        gres="gpu:a100:2",
        cpus=8,
        memory="16G",
        options=("--constraint=nvme",),
    )

    assert job_resources(options, job(1)) == [
        "--nodes=1",
        "--ntasks=1",
        "--partition=gpu",
        "--account=lab",
        "--qos=high",
        "--time=0-01:30:00",
        "--gres=gpu:a100:2",
        "--cpus-per-task=8",
        "--mem=16G",
        "--constraint=nvme",
    ]


def test_gpus_of_all_slots_are_asked_for() -> None:
    assert "--gres=gpu:6" in job_resources(SlurmOptions(), job(1, slots=3, gpus=2))


def test_resources_of_the_section_replace_the_count_of_gpus() -> None:
    found = job_resources(SlurmOptions(gres="shard:4"), job(1, gpus=1))

    assert [one for one in found if "gres" in one] == ["--gres=shard:4"]


def test_job_has_the_name_of_its_agent_and_gets_term_before_its_end() -> None:
    lines = script(SlurmOptions(grace_seconds=90), job(4))

    assert "#SBATCH --job-name=nni-0123abcd-exp-a-4" in lines
    assert "#SBATCH --signal=B:TERM@90" in lines
    assert "#SBATCH --requeue" in lines


def test_environment_of_the_fleet_does_not_reach_the_job() -> None:
    assert "#SBATCH --export=NONE" in script(SlurmOptions(), job(4))


def test_array_has_the_distances_of_the_numbers() -> None:
    assert "#SBATCH --array=0,3" in script(SlurmOptions(), job(4, 7))


def test_no_secret_is_in_the_script() -> None:
    text = "\n".join(script(SlurmOptions(), job(4, 7)))

    assert not any(secret in text for secret in ("bus-user", "bus-password", "manager-token"))


def test_comment_with_quotes_is_one_word() -> None:
    lines = script(SlurmOptions(comment="it's ours"), job(1))

    assert "#SBATCH --comment='it'\"'\"'s ours'" in lines


def test_image_of_apptainer_holds_the_agent() -> None:
    options = SlurmOptions(image="/images/a b.sif", image_options=("--nv",))

    assert script(options, job(1))[-1].startswith("exec apptainer exec --nv '/images/a b.sif' pyt")


def test_image_of_pyxis_is_an_option_of_srun() -> None:
    options = SlurmOptions(image="nvcr.io#nvidia/pytorch:24.01-py3", image_runtime="pyxis")

    last = script(options, job(1))[-1]

    assert last.startswith("exec srun --ntasks=1 --overlap")
    assert "--container-image='nvcr.io#nvidia/pytorch:24.01-py3' --container-mount-home" in last


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Folder of NNI with a bundle that prints its arguments."""
    folder = tmp_path / "a folder" / "bundles" / "d1g35t"
    folder.mkdir(parents=True)
    (folder / "run.py").write_text("import os, sys\nprint(os.getpid(), *sys.argv[1:], sep='|')\n")
    return tmp_path / "a folder"


def run(text: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", f"echo $$\n{text}"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", **variables},
    )


def test_script_becomes_the_process_of_the_agent(bundle: Path) -> None:
    done = run(write_job_script(SlurmOptions(), job(4), paths(bundle)))

    shell, line = done.stdout.splitlines()
    assert line.split("|") == [
        shell, "worker", "--folder", str(bundle), "run", "nni-0123abcd-exp-a-4", "d1g35t",
    ]  # fmt: skip


def test_task_of_an_array_runs_the_agent_of_its_index(bundle: Path) -> None:
    text = write_job_script(SlurmOptions(), job(4, 17), paths(bundle))

    assert "|nni-0123abcd-exp-a-17|" in run(text, SLURM_ARRAY_TASK_ID="13").stdout


def test_setup_lines_run_before_the_agent(bundle: Path) -> None:
    options = SlurmOptions(setup_lines=("X=1", 'echo "loaded $X"'))

    assert "loaded 1" in run(write_job_script(options, job(4), paths(bundle))).stdout


def test_path_of_python_is_put_first(bundle: Path) -> None:
    options = SlurmOptions(python_path="/opt/a b", setup_lines=("echo $PATH",))

    assert "/opt/a b:/usr/local/bin" in run(write_job_script(options, job(4), paths(bundle))).stdout


def test_node_without_the_shared_folder_is_known_by_the_exit_code(tmp_path: Path) -> None:
    text = write_job_script(SlurmOptions(), job(4), paths(tmp_path))

    assert run(text).returncode == FOLDER_MISSING


@pytest.mark.parametrize(
    ("limit_s", "duration_s", "lifetime"),
    [(3600, 600, 2940.0), (90, 30, 30.0), (600, 3600, 0.0), (None, 600, None), (3600, None, None)],
)
def test_agent_takes_no_trial_that_would_not_fit(
    limit_s: int | None, duration_s: int | None, lifetime: float | None
) -> None:
    assert lifetime_s(SlurmOptions(grace_seconds=60), limit_s, duration_s) == lifetime


def test_script_of_an_agent_without_options_is_this_one() -> None:
    assert script(SlurmOptions(), job(4)) == [
        "#!/bin/bash",
        "#SBATCH --job-name=nni-0123abcd-exp-a-4",
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks=1",
        "#SBATCH --output=/home/ann/.nni/logs/slurm-%j.log",
        "#SBATCH --open-mode=append",
        "#SBATCH --signal=B:TERM@60",
        "#SBATCH --requeue",
        "#SBATCH --export=NONE",
        "NNI_SLURM_AGENT=nni-0123abcd-exp-a-4",
        "[ -f /home/ann/.nni/bundles/d1g35t/run.py ] || exit 72",
        (
            "exec python3 -I -S /home/ann/.nni/bundles/d1g35t/run.py worker --folder /home/ann/.nni"
            ' run "$NNI_SLURM_AGENT" d1g35t </dev/null'
        ),
    ]


def test_options_of_an_array_come_before_its_commands() -> None:
    options = SlurmOptions(
        comment="a b", python_path="/opt/py", setup_lines=("module load a", "b"), time_limit="1h"
    )

    lines = script(options, job(9, 11))

    assert lines[1:6] == [
        "#SBATCH --job-name=nni-0123abcd-exp-a-9.array",
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks=1",
        "#SBATCH --time=0-01:00:00",
        "#SBATCH --comment='a b'",
    ]
    assert lines[6] == "#SBATCH --array=0,2"
    assert lines[-6:-1] == [
        "NNI_SLURM_AGENT=nni-0123abcd-exp-a-$((9 + SLURM_ARRAY_TASK_ID))",
        "[ -f /home/ann/.nni/bundles/d1g35t/run.py ] || exit 72",
        "export PATH=/opt/py:$PATH",
        "module load a",
        "b",
    ]


def test_folder_with_a_blank_is_one_word_of_each_line() -> None:
    lines = script(SlurmOptions(), job(4), "/a b")

    assert "#SBATCH --output='/a b/logs/slurm-%j.log'" in lines
    assert "[ -f '/a b/bundles/d1g35t/run.py' ] || exit 72" in lines
    assert "worker --folder '/a b' run" in lines[-1]


def test_options_of_pyxis_are_words_behind_its_own() -> None:
    options = SlurmOptions(
        image="a", image_runtime="pyxis", image_options=("--container-mounts=/a b",)
    )

    assert script(options, job(1))[-1].startswith(
        "exec srun --ntasks=1 --overlap --export=ALL --container-image=a --container-mount-home"
        " '--container-mounts=/a b' python3 -I -S "
    )


@pytest.mark.parametrize(("gpus", "found"), [(None, []), (0, []), (1, ["--gres=gpu:2"])])
def test_gpus_are_asked_for_if_trials_take_any(gpus: int | None, found: list[str]) -> None:
    resources = job_resources(SlurmOptions(), job(1, slots=2, gpus=gpus))

    assert resources == ["--nodes=1", "--ntasks=1", *found]
