"""Script of a batch job that runs an agent: options, setup lines, and the agent in the foreground.

The script holds no secret: every user of the cluster may read it. It names the file with the
agent's settings, which only their owner can read.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from svc_trial_runner.fleet.adapters.slurm.job_names import JobOrder
from svc_trial_runner.fleet.adapters.slurm.options import APPTAINER, SlurmOptions
from svc_trial_runner.fleet.adapters.slurm.quantities import MINUTE_S, format_time_limit

AGENT_VARIABLE: Final = "NNI_SLURM_AGENT"
"""Name of the agent, within the script."""
LOG_NAME: Final = "slurm-%j.log"
"""Name of a job's output; Slurm puts the number of the job in."""
FOLDER_MISSING: Final = 72
"""Exit code of a script that does not find the bundle of its agent on the compute node."""


@dataclass(frozen=True, slots=True)
class ScriptPaths:
    """Absolute paths that a script names, and the content of the bundle."""

    base: str
    """Folder of NNI on the shared file system."""
    log_folder: str
    """Folder of the jobs' output, which exists."""
    digest: str
    """Hash of the bundle, which is unpacked below `base`."""
    python: str
    """Interpreter of the agent on the compute nodes: a path, or a name on the PATH."""

    @property
    def program(self) -> str:
        """Program of the bundle that runs an agent."""
        return f"{self.base}/bundles/{self.digest}/run.py"


def job_resources(options: SlurmOptions, job: JobOrder) -> list[str]:
    """Return the options of sbatch for the resources of one agent, `--name=value`."""
    first = job.orders[0]
    gpus = first.slots * (first.gpus_per_trial or 0)
    gres = options.gres or (f"gpu:{gpus}" if gpus else "")
    limit_s = options.time_limit_s
    pairs = [
        ("partition", options.partition),
        ("account", options.account),
        ("qos", options.qos),
        ("time", format_time_limit(limit_s) if limit_s else ""),
        ("gres", gres),
        ("cpus-per-task", str(options.cpus) if options.cpus else ""),
        ("mem", options.memory),
    ]
    return [
        "--nodes=1",
        "--ntasks=1",
        *(f"--{name}={value}" for name, value in pairs if value),
        *options.options,
    ]


def write_job_script(options: SlurmOptions, job: JobOrder, paths: ScriptPaths) -> str:
    """Return the sbatch script of an agent or an array: options, setup lines, exec of the agent.

    Args:
        options: of the section.
        job: agents of the job; several are an array.
        paths: on the shared file system.
    """
    command = [
        *(shlex.quote(paths.python), "-I", "-S", shlex.quote(paths.program), "worker"),
        *("--folder", shlex.quote(paths.base), "run", f'"${AGENT_VARIABLE}"', paths.digest),
    ]
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={job.job_name}",
        *(f"#SBATCH {one}" for one in job_resources(options, job)),
        *([f"#SBATCH --comment={_quoted(options.comment)}"] if options.comment else []),
        *([f"#SBATCH --array={','.join(map(str, job.indices))}"] if job.indices else []),
        f"#SBATCH --output={_quoted(f'{paths.log_folder}/{LOG_NAME}')}",
        "#SBATCH --open-mode=append",
        f"#SBATCH --signal=B:TERM@{options.grace_seconds}",
        "#SBATCH --requeue",
        # The login environment: that of the fleet has descriptors and settings of its own.
        "#SBATCH --export=NONE",
        _name_line(job),
        f"[ -f {shlex.quote(paths.program)} ] || exit {FOLDER_MISSING}",
        *_path_lines(options),
        *options.setup_lines,
        # TERM, before the limit and at the end, reaches the process of the script: the agent.
        f"exec {' '.join(_in_container(options, command))} </dev/null",
    ]
    return "\n".join(lines) + "\n"


def lifetime_s(options: SlurmOptions, limit_s: int | None, duration_s: int | None) -> float | None:
    """Return the seconds after which no further trial fits into the job; None: no limit.

    Args:
        options: of the section.
        limit_s: of the job; None: it has none.
        duration_s: `maxTrialDuration`; None: not known.
    """
    if limit_s is None or duration_s is None:
        return None
    whole_minutes_s = -(-limit_s // MINUTE_S) * MINUTE_S
    return float(max(0, whole_minutes_s - options.grace_seconds - duration_s))


def _name_line(job: JobOrder) -> str:
    first = job.orders[0].name
    if not job.indices:
        return f"{AGENT_VARIABLE}={first}"
    stem = str(first)[: -len(str(first.number))]
    return f"{AGENT_VARIABLE}={stem}$(({first.number} + SLURM_ARRAY_TASK_ID))"


def _path_lines(options: SlurmOptions) -> list[str]:
    if not options.python_path:
        return []
    return [f"export PATH={shlex.quote(options.python_path)}:$PATH"]


def _in_container(options: SlurmOptions, command: Sequence[str]) -> list[str]:
    if not options.image:
        return list(command)
    if options.image_runtime == APPTAINER:
        return [
            "apptainer",
            "exec",
            *map(shlex.quote, options.image_options),
            shlex.quote(options.image),
            *command,
        ]
    # A plug-in of srun starts the container; the agent's folder is in the home of the user.
    return [
        "srun",
        "--ntasks=1",
        "--overlap",
        "--export=ALL",
        f"--container-image={shlex.quote(options.image)}",
        "--container-mount-home",
        *map(shlex.quote, options.image_options),
        *command,
    ]


def _quoted(text: str) -> str:
    """Return a value quoted for an `#SBATCH` line, in which Slurm reads quotes as a shell does."""
    return shlex.quote(text)
