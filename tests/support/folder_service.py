"""Training service of this machine: a job is a process in a copy of its folder.

All that is known of a job is in files, so that another process of the service finds it again.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from nni_wire.training_services import (
    JobApplicationForm,
    TrainingService,
    TrialJobDetail,
    TrialJobStatus,
)
from tests.support import wait

END_S: Final = 20.0
_START: Final = 'setsid sh -c "$0" >../log 2>&1 </dev/null & echo $!'
_JOB: Final = (
    "trap : TERM; : >../started; {command}; code=$?; trap '' TERM; "
    "echo $code >../status.new; mv ../status.new ../status"
)


class FolderService(TrainingService):
    """Service whose jobs are in the folder that its section names."""

    def __init__(self, section: Mapping[str, Any], folder: Path) -> None:
        super().__init__(section, folder)
        if not section.get("folder"):
            raise ValueError("folder must be given")
        self._jobs = Path(section["folder"])

    async def list_trial_jobs(self) -> list[TrialJobDetail]:
        return [self._job(file.parent) for file in sorted(self._jobs.glob("*/job.json"))]

    async def submit_trial_job(self, form: JobApplicationForm) -> TrialJobDetail:
        return await asyncio.to_thread(self._submit, form)

    async def cancel_trial_job(self, trial_job_id: str, is_early_stopped: bool = False) -> None:
        job = await self.get_trial_job(trial_job_id)
        folder = Path(job.working_directory).parent
        status = TrialJobStatus.EARLY_STOPPED if is_early_stopped else TrialJobStatus.USER_CANCELED
        (folder / "canceled").write_text(status)
        await asyncio.to_thread(end_job, folder)

    def _submit(self, form: JobApplicationForm) -> TrialJobDetail:
        folder = self._jobs / form.tags[0]
        code = folder / "code"
        shutil.copytree(form.code_directory, code)
        script = _JOB.format(command=form.command)
        started = subprocess.run(
            ["sh", "-c", _START, script], cwd=code, stdout=subprocess.PIPE, check=True
        )
        wait.until((folder / "started").exists, END_S, "start of the job")
        job = {"pid": int(started.stdout), "tags": form.tags, "submitted": _now().isoformat()}
        (folder / "job.new").write_text(json.dumps(job))
        (folder / "job.new").rename(folder / "job.json")
        return self._job(folder)

    def _job(self, folder: Path) -> TrialJobDetail:
        job = json.loads((folder / "job.json").read_text())
        status, message = TrialJobStatus.RUNNING, ""
        if (folder / "status").exists():
            code = int((folder / "status").read_text())
            status = TrialJobStatus.FAILED if code else TrialJobStatus.SUCCEEDED
            message = f"exit code {code}"
            if (folder / "canceled").exists():
                status = TrialJobStatus((folder / "canceled").read_text())
        return TrialJobDetail(
            folder.name,
            status,
            submit_time=datetime.fromisoformat(job["submitted"]),
            tags=tuple(job["tags"]),
            working_directory=str(folder / "code"),
            message=message,
        )


def end_job(folder: Path) -> None:
    """Send TERM to the processes of a job until they have ended."""
    group = json.loads((folder / "job.json").read_text())["pid"]

    def has_ended() -> bool:
        if (folder / "status").exists():
            return True
        with suppress(ProcessLookupError):  # again: it may have come before the command began
            os.killpg(group, signal.SIGTERM)
        return False

    wait.until(has_ended, END_S, "end of the job")


def _now() -> datetime:
    return datetime.now(tz=UTC)
