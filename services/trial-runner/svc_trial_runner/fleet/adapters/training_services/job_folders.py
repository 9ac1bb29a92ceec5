"""Private folders on this machine with the files of jobs: bundle, settings, start of the agent."""

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Final

from svc_common.durable_files import write_private
from svc_common.own_files import private_folder
from svc_trial_runner.fleet.adapters.bundles.worker_commands import bundle_digest, worker_program
from svc_trial_runner.fleet.adapters.training_services import job_start
from svc_trial_runner.fleet.adapters.training_services.options import ServiceOptions
from svc_trial_runner.fleet.ports import PlatformError

COMMAND: Final = "sh start.sh"
"""Line of the shell that starts an agent in its folder, or in a copy of it."""
_JOBS: Final = "jobs"
_START: Final = """\
#!/bin/sh
cd "$(dirname "$0")" || exit 1
umask 077
exec {python} -I -S start.py
"""


class JobFolders:
    """Folders of jobs, one for each agent that is not forgotten. All methods block.

    Args:
        folder: private folder of the platform.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / _JOBS
        """Folder of all jobs."""

    def __contains__(self, name: str) -> bool:
        """Return whether an agent has a folder."""
        return (self.folder / name).is_dir()

    def write(self, name: str, bundle: Path, settings: bytes, options: ServiceOptions) -> Path:
        """Write the files of an agent's job, for their owner only; return its folder.

        Args:
            name: of the agent.
            bundle: packed agent for the Python of the jobs.
            settings: of the agent.
            options: of the section.

        Raises:
            PlatformError: they cannot be written.
        """
        folder = self.folder / name
        job = {"digest": bundle_digest(bundle), "python": list(options.python_version)}
        try:
            for one in (self.folder, folder):
                private_folder(one)
            _place(bundle, folder / job_start.BUNDLE)
            for file, text in (
                (job_start.PROGRAM, worker_program().decode()),
                ("start.py", Path(job_start.__file__).read_text("utf-8")),
                ("start.sh", _START.format(python=shlex.quote(options.python))),
                (job_start.JOB, json.dumps(job)),
                (job_start.SETTINGS, settings.decode()),
            ):
                write_private(folder / file, text)
        except OSError as error:
            raise PlatformError(f"the files of a job cannot be written: {error}") from error
        return folder

    def remove(self, name: str) -> None:
        """Remove an agent's folder; errors are ignored."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def remove_all(self) -> None:
        """Remove the folders of all jobs; errors are ignored."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _place(bundle: Path, target: Path) -> None:
    """Put a bundle into a folder, without a second copy if both are on one file system."""
    target.unlink(missing_ok=True)
    try:
        os.link(bundle, target)
    except OSError:
        shutil.copyfile(bundle, target)
