"""Program `start.py` in a job's folder: unpacks the bundle and becomes the agent.

Standard library only. The folder, which is the working directory, may be a copy: the agent's own
folder is made in it. The settings are removed before the agent starts.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

JOB = "job.json"
"""Hash of the bundle, and the version of Python that it is for."""
BUNDLE = "bundle.tar.gz"
PROGRAM = "program.py"
"""Program of a worker."""
SETTINGS = "settings.json"
FOLDER = "nni"
"""Folder of the unpacked bundle."""
HOME = "home"
"""Folder of the agent."""


def main() -> None:
    """Start the agent of the working directory in place of this process, or exit with a message."""
    folder = Path.cwd()
    job = json.loads((folder / JOB).read_text("utf-8"))
    check_version(job["python"])
    if not (folder / SETTINGS).is_file():
        sys.exit(f"ERROR: {folder / SETTINGS} is gone: this job was started before")
    unpack(folder, job["digest"])
    start_agent(folder, job["digest"])


def check_version(wanted: list[int]) -> None:
    """Exit with a message unless this interpreter has the version that the bundle is for."""
    found = ".".join(map(str, sys.version_info[:2]))
    named = ".".join(map(str, wanted))
    if found != named:
        sys.exit(
            f"ERROR: pythonVersion must be {found}, that of {sys.executable} in the job,"
            f" got {named}; change it, or give another interpreter as python"
        )


def unpack(folder: Path, digest: str) -> None:
    """Unpack the bundle below the folder; exit with the message of the worker's program."""
    with (folder / BUNDLE).open("rb") as bundle:
        done = subprocess.run(
            [
                *(sys.executable, "-I", "-S", str(folder / PROGRAM)),
                *("--folder", str(folder / FOLDER), "unpack", digest),
            ],
            stdin=bundle,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode:
        sys.exit(f"ERROR: the bundle of the agent cannot be unpacked: {done.stdout.strip()}")


def start_agent(folder: Path, digest: str) -> None:
    """Replace this process by the agent, which reads its settings from the standard input."""
    settings = json.loads((folder / SETTINGS).read_text("utf-8"))
    settings["home"] = str(folder / HOME)
    with tempfile.TemporaryFile(dir=folder) as source:
        source.write(json.dumps(settings).encode())
        source.seek(0)
        os.dup2(source.fileno(), 0)
    (folder / SETTINGS).unlink()
    program = folder / FOLDER / "bundles" / digest / "run.py"
    os.execv(sys.executable, [sys.executable, "-I", "-S", str(program), "agent", "-"])  # noqa: S606 - as meant


if __name__ == "__main__":
    main()
