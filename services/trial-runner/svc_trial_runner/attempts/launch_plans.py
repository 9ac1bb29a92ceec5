"""Launch plans: command, environment and code of an experiment's trials, computed once."""

import os
import shutil
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from svc_common.storage.shared_storage import OUTPUT_FOLDER as SHARED_OUTPUTS
from svc_trial_runner.domain.command import PythonCommand, parse_python_command
from svc_trial_runner.domain.launch import base_environment
from svc_trial_runner.domain.tasks import TrialWork
from svc_trial_runner.ports import CodeStore, Environments, LaunchError

_PLANS_KEPT: Final = 64


class SharedFolder(Protocol):
    """Interface of a shared storage that trials write to, mounted on demand."""

    async def ensure(self) -> None:
        """Mount the storage unless it is mounted; raise LaunchError if that fails.

        Raises:
            LaunchError: it cannot be mounted; the text is for the user.
        """
        ...


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """Template for an experiment's trials: command, environment, code and folders."""

    command: str
    python: PythonCommand | None
    """The command, if a warm interpreter may run it."""
    base: Mapping[str, str]
    """Shared variables; the same object as long as nothing changes."""
    code_directory: str
    experiment_directory: str
    output_folder: str
    """Folder of the outputs below that of the trial; empty: the trial's folder itself."""
    copied: bool
    """True if each trial gets a copy of the code, because it came as an archive."""


class LaunchPlans:
    """Cache of the launch plan of each experiment: environment, unpacked code, command.

    Args:
        code: unpacks code archives.
        environments: reads the clients' environments.
        tools_directory: folder with `nni-trial`, first on every PATH.
        default_root: parent of the trial folders of experiments without a folder.
        storage: shared storage that has `default_root`; None: it is on a disk of this machine.
    """

    def __init__(
        self,
        code: CodeStore,
        environments: Environments,
        tools_directory: Path,
        default_root: Path,
        storage: SharedFolder | None = None,
    ) -> None:
        self._code = code
        self._environments = environments
        self._tools_directory = tools_directory
        self._default_root = default_root
        self._storage = storage
        self._plans: OrderedDict[tuple[str, bytes], tuple[object, LaunchPlan]] = OrderedDict()
        self._interpreters: dict[tuple[str, str, str], str] = {}
        """Path of the interpreter that was found, by its name, the code folder and the PATH."""
        self._scripts: set[str] = set()
        """Paths of scripts that could be read when a trial was started."""

    async def plan(self, work: TrialWork) -> LaunchPlan:
        """Return a task's plan, cached by environment and spec; fetch code, mount the storage.

        Raises:
            LaunchError: code or environment are not available; the text is for the user.
        """
        client = await self._environments.load(work.spec.environment_file)
        if self._storage is not None:
            await self._storage.ensure()
        name = (work.key.experiment_id, work.spec_digest)
        known = self._plans.get(name)
        if known is not None and known[0] is client and _is_folder(known[1].code_directory):
            return known[1]
        spec = work.spec
        if spec.code_archive is not None:
            code_directory = str(await self._code.materialise(work.key, spec.code_archive))
        else:
            code_directory = spec.code_directory or "/"
            if not _is_folder(code_directory):
                raise LaunchError(
                    f"the code directory {code_directory} {_fault_of(code_directory)}"
                )
        plan = LaunchPlan(
            command=spec.command,
            python=parse_python_command(spec.command),
            base=base_environment(
                client.variables,
                spec.environment,
                interpreter=client.interpreter,
                tools_directory=str(self._tools_directory),
            ),
            code_directory=code_directory,
            experiment_directory=spec.experiment_directory
            or str(self._default_root / work.key.experiment_id),
            output_folder=SHARED_OUTPUTS if self._storage is not None else "",
            copied=spec.code_archive is not None,
        )
        self._plans[name] = (client, plan)
        while len(self._plans) > _PLANS_KEPT:
            self._plans.popitem(last=False)
        return plan

    async def folder(self, plan: LaunchPlan, trial_directory: str) -> str:
        """Check the command's files; return the working folder: that of the code, or a fresh copy.

        Raises:
            LaunchError: it cannot be made, the command's interpreter does not exist, or its script
                is gone.
        """
        self._check_interpreter(plan)
        if not plan.copied:
            self._check_script(plan)
            return plan.code_directory
        target = Path(trial_directory) / "code"
        await self._code.copy(Path(plan.code_directory), target)
        return str(target)

    def _check_interpreter(self, plan: LaunchPlan) -> None:
        """Raise LaunchError unless the interpreter of a trial's Python command exists on its PATH.

        That of a removed virtual environment is no fault of the trial. Other commands are left to
        bash.
        """
        if plan.python is None:
            return
        name, path = plan.python.interpreter, plan.base.get("PATH", "")
        # The place that was found last, first: a search takes a system call for each folder.
        search = (name, plan.code_directory, path)
        if (known := self._interpreters.get(search)) is not None and os.access(known, os.X_OK):
            return
        place = f"{plan.code_directory}/{name}" if "/" in name and name[0] != "/" else name
        found = shutil.which(place, path=path)
        if found is None:
            where = "" if "/" in name else f" in PATH={path}"
            raise LaunchError(f"there is no interpreter {name}{where}")
        if len(self._interpreters) >= _PLANS_KEPT:
            self._interpreters.clear()
        self._interpreters[search] = found

    def _check_script(self, plan: LaunchPlan) -> None:
        """Raise LaunchError if the script of a Python command was there for earlier trials only.

        A script that was never there is left to the trial, which fails: the command names it
        wrongly. One that is gone shows that the folder's disk is not mounted any more, or that its
        server refuses access.
        """
        if plan.python is None or plan.python.arguments[0] == "-m":
            return
        script = os.path.join(plan.code_directory, plan.python.arguments[0])  # noqa: PTH118 - as _is_folder
        if os.access(script, os.R_OK):
            if len(self._scripts) >= _PLANS_KEPT:
                self._scripts.clear()
            self._scripts.add(script)
        elif script in self._scripts:
            raise LaunchError(f"the script {script} is gone, or cannot be read any more")

    def forget(self, experiment_id: str) -> list[str]:
        """Drop an experiment's cached plans; return code folders that no other one uses.

        Returns:
            Code directories that no other experiment uses.
        """
        gone = {
            name: self._plans.pop(name)[1] for name in list(self._plans) if name[0] == experiment_id
        }
        used = {plan.code_directory for _, plan in self._plans.values()}
        return sorted({plan.code_directory for plan in gone.values()} - used)


def _is_folder(path: str) -> bool:
    """Return whether a folder exists and can be entered; blocks for microseconds."""
    return os.path.isdir(f"{path}/.")  # noqa: PTH112 - once a trial; costs half of Path.is_dir


def _fault_of(path: str) -> str:
    """Return in words why a path is no folder that can be entered."""
    return "cannot be entered" if os.path.lexists(path) else "does not exist"
