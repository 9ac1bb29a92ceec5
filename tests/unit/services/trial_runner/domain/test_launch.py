import json
import subprocess
from pathlib import Path

import pytest

from svc_trial_runner.domain.launch import (
    TrialIdentity,
    base_environment,
    parameter_file,
    run_script,
    state_line,
    trial_variables,
)

IDENTITY = TrialIdentity("exp", "aaaaa", 3, "local", "/root/exp/trials/aaaaa", "/code")


def base(inherited: dict[str, str], interpreter: str | None = None) -> dict[str, str]:
    return base_environment(inherited, {}, interpreter=interpreter, tools_directory="/tools")


def test_variables_of_the_services_stay_behind() -> None:
    made = base({"NNI_TOKEN": "secret", "NNI_MINE": "kept", "HOME": "/h", "PATH": "/bin"})

    assert made == {"NNI_MINE": "kept", "HOME": "/h", "PATH": "/tools:/bin"}


def test_interpreter_of_the_client_comes_first() -> None:
    assert base({"PATH": "/bin"}, "/venv/bin/python3")["PATH"] == "/tools:/venv/bin:/bin"


def test_active_virtual_environment_is_left_alone() -> None:
    made = base({"PATH": "/mine/bin:/bin", "VIRTUAL_ENV": "/mine"}, "/venv/bin/python3")

    assert made["PATH"] == "/tools:/mine/bin:/bin"


def test_variables_of_the_experiment_win() -> None:
    made = base_environment(
        {"A": "1", "PATH": "/bin"}, {"A": "2"}, interpreter=None, tools_directory="/tools"
    )

    assert made["A"] == "2"


def test_documented_variables_are_set() -> None:
    assert trial_variables(IDENTITY, None) == {
        "NNI_PLATFORM": "local",
        "NNI_EXP_ID": "exp",
        "NNI_SYS_DIR": "/root/exp/trials/aaaaa",
        "NNI_TRIAL_JOB_ID": "aaaaa",
        "NNI_OUTPUT_DIR": "/root/exp/trials/aaaaa",
        "NNI_TRIAL_SEQ_ID": "3",
        "NNI_CODE_DIR": "/code",
        "MULTI_PHASE": "false",
    }


@pytest.mark.claim("platform", 36)
@pytest.mark.parametrize(("value", "present"), [(None, False), ("", True), ("0,2", True)])
def test_visible_devices_are_set_only_if_assigned(value: str | None, present: bool) -> None:
    made = trial_variables(IDENTITY, value)

    assert ("CUDA_VISIBLE_DEVICES" in made) is present
    assert made.get("CUDA_VISIBLE_DEVICES") == value


@pytest.mark.claim("platform", 35)
def test_script_survives_any_command_and_any_path(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "folder" $HOME'
    (folder / ".nni").mkdir(parents=True)
    variables = {"NNI_SYS_DIR": str(folder), "ODD": "a'b\"c$d\ne"}

    script = run_script(variables, str(folder), 'echo "$ODD"; cd /; exit 4')

    assert script.splitlines()[1].startswith("cd ")
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "a'b\"c$d\ne\n"
    assert (folder / ".nni/state").read_text().startswith("4 ")


def test_parameter_file_holds_what_is_documented() -> None:
    assert json.loads(parameter_file(5, {"x": 1}, "")) == {
        "parameter_id": 5,
        "parameters": {"x": 1},
        "parameter_source": "algorithm",
        "parameter_index": 0,
    }


@pytest.mark.claim("platform", 34)
def test_state_is_code_and_milliseconds() -> None:
    assert state_line(0, 1_700_000_000_123) == "0 1700000000123"


def test_trial_without_a_path_finds_the_programs_of_the_system() -> None:
    assert base({"PATH": ""})["PATH"] == "/tools:/usr/local/bin:/usr/bin:/bin"
