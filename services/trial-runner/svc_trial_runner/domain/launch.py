"""Inputs of a trial's start: variables, files, and the record as a shell script."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

TOKEN_VARIABLE: Final = "NNI_TRIAL_TOKEN"  # noqa: S105 - the name of a variable
"""Name of the variable with a trial's token, which marks all its processes."""
_PRIVATE: Final = frozenset(
    {
        "NNI_DISPATCHER_GRPC",
        "NNI_MANAGER_GRPC",
        "NNI_MANAGER_HTTP",
        "NNI_NATS_URL",
        "NNI_READY_FD",
        "NNI_TOKEN",
        "NNI_TRIAL_SOCKET",
        TOKEN_VARIABLE,
        "NNI_VERSION",
    }
)
"""Variables of the services (addresses, tokens) and of an outer trial never reach a trial.

All others that start with `NNI_` are either set anew for the trial or the user's own.
"""


@dataclass(frozen=True, slots=True)
class TrialIdentity:
    """Ids, platform and folders that a trial gets as environment variables."""

    experiment_id: str
    trial_id: str
    sequence_id: int
    platform: str
    trial_directory: str
    code_directory: str
    output_directory: str = ""
    """Empty: the folder of the trial."""


def base_environment(
    inherited: Mapping[str, str],
    further: Mapping[str, str],
    *,
    interpreter: str | None,
    tools_directory: str,
) -> dict[str, str]:
    """Build trials' shared environment: client's without NNI's own, then further; extended PATH.

    Args:
        inherited: the creating client's variables, or the agent's own.
        further: variables of the experiment's configuration, which override.
        interpreter: the client's Python; its folder comes first on the PATH unless a virtual
            environment is active, so that `python3` finds the packages beside it.
        tools_directory: folder with `nni-trial`; comes before everything else on the PATH.
    """
    environment = {name: value for name, value in inherited.items() if name not in _PRIVATE}
    environment.update(further)
    folders = [tools_directory]
    if interpreter and not environment.get("VIRTUAL_ENV"):
        folders.append(str(PurePosixPath(interpreter).parent))
    path = environment.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
    environment["PATH"] = ":".join([*folders, path])
    return environment


def trial_variables(identity: TrialIdentity, cuda_visible_devices: str | None) -> dict[str, str]:
    """Build the `NNI_…` variables of one trial, with its visible GPUs."""
    variables = {
        "NNI_PLATFORM": identity.platform,
        "NNI_EXP_ID": identity.experiment_id,
        "NNI_SYS_DIR": identity.trial_directory,
        "NNI_TRIAL_JOB_ID": identity.trial_id,
        "NNI_OUTPUT_DIR": identity.output_directory or identity.trial_directory,
        "NNI_TRIAL_SEQ_ID": str(identity.sequence_id),
        "NNI_CODE_DIR": identity.code_directory,
        "MULTI_PHASE": "false",
    }
    if cuda_visible_devices is not None:
        variables["CUDA_VISIBLE_DEVICES"] = cuda_visible_devices
    return variables


def run_script(variables: Mapping[str, str], code_directory: str, command: str) -> str:
    """Return a bash script that records a trial's variables and command and can rerun it.

    The secrets of the trial's socket are left out.
    """
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    directory = variables["NNI_SYS_DIR"]
    stderr = shlex.quote(f"{directory}/stderr")
    state = shlex.quote(f"{directory}/.nni/state")
    return (
        "#!/bin/bash\n"
        f"cd {shlex.quote(code_directory)}\n"
        f"{exports}"
        f"(eval {shlex.quote(command)}) 2>{stderr}\n"
        f'echo $? "$(date +%s%3N)" >{state}\n'
    )


def parameter_file(parameter_id: int, parameters: Any, source: str) -> str:  # noqa: ANN401 - any JSON value
    """Return the JSON of `parameter.cfg`: id, parameters and source."""
    return json.dumps(
        {
            "parameter_id": parameter_id,
            "parameters": parameters,
            "parameter_source": source or "algorithm",
            "parameter_index": 0,
        }
    )


def state_line(exit_code: int, ended_at_ms: int) -> str:
    """Return the line `<exit code> <end in ms>` of `.nni/state`.

    Args:
        exit_code: 0-255, or 128 + signal for a killed process, as in a shell.
        ended_at_ms: milliseconds since 1970.
    """
    return f"{exit_code} {ended_at_ms}"
