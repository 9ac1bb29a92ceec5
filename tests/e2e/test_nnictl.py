"""`nnictl` with the services of a private installation: creation, control and deletion."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import psutil
import pytest

import nni
from tests.support.experiments import PATIENT, write_experiment
from tests.support.nnictl import Nnictl, nnictl, shared_shape
from tests.support.ports import free_port
from tests.support.wait import until

__all__ = ["nnictl", "shared_shape"]  # fixtures


def folder(nnictl: Nnictl, experiment_id: str) -> Path:
    return nnictl.shape.root / experiment_id


def get(url: str) -> str:
    with build_opener(ProxyHandler({})).open(url, timeout=60) as answer:
        text: str = answer.read().decode()
        return text


@pytest.mark.claim("platform", 17)
@pytest.mark.claim("platform", 41)
def test_create_tells_id_and_address_and_the_experiment_is_done_in_the_end(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    port = free_port()

    out = nnictl("create", "--config", write_experiment(tmp_path), "-p", port).stdout

    assert "INFO: Successfully started experiment!" in out
    assert f"http://127.0.0.1:{port}" in out
    assert "8. nnictl --help" in out
    experiment_id = next(line for line in out.splitlines() if "experiment id is" in line)[-8:]
    nnictl.shape.wait_for(experiment_id, "DONE")
    trials = nnictl.trials(experiment_id)
    assert [trial["sequenceId"] for trial in trials] == [0, 1, 2, 3, 4]
    assert {trial["status"] for trial in trials} == {"SUCCEEDED"}
    assert "<html" in get(f"http://127.0.0.1:{port}/")


@pytest.mark.claim("platform", 42)
def test_version_is_one_everywhere(nnictl: Nnictl, tmp_path: Path) -> None:
    port = free_port()
    nnictl.create(write_experiment(tmp_path), port=port)

    version = json.loads(get(f"http://127.0.0.1:{port}/api/v1/nni/version"))

    printed = version["version"] if isinstance(version, dict) else version
    assert nnictl("--version").stdout.strip() == nni.__version__ == printed


@pytest.mark.claim("platform", 28)
def test_port_of_another_experiment_is_refused_by_its_name(nnictl: Nnictl, tmp_path: Path) -> None:
    config = write_experiment(tmp_path)
    port = free_port()
    first = nnictl.create(config, port=port)

    refused = nnictl("create", "-c", config, "-p", port, expect=2)

    assert f"port {port} is in use by experiment {first}" in refused.stderr
    assert len(nnictl.json("experiment", "list", "--json")) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trialConcurrency": 0}, "trialConcurrency"),
        ({"tuner": {"name": "TPEE"}}, "TPE"),
        ({"searchSpace": {"x": {"_type": "unifrom", "_value": [0, 1]}}}, "unifrom"),
        ({"trialCodeDirectory": "nowhere"}, "trialCodeDirectory must exist"),
        ({"trainingService": {"platform": "dlts"}}, "DLTS is not supported: it has no public API"),
        ({"searchSpaceFile": "s.json"}, "searchSpace and searchSpaceFile"),
        ({"tuner": {"className": "nowhere.Tuner", "codeDirectory": "."}}, "nowhere"),
    ],
)  # fmt: skip
def test_wrong_configuration_is_refused_and_leaves_nothing(
    nnictl: Nnictl, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    before = set(nnictl.shape.root.glob("*"))

    refused = nnictl(
        "create", "-c", write_experiment(tmp_path, **changes), "-p", free_port(), expect=2
    )

    assert refused.stderr.startswith("ERROR: ")
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr
    assert set(nnictl.shape.root.glob("*")) == before


def test_unreadable_root_folder_is_refused(nnictl: Nnictl, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = write_experiment(tmp_path / "e", experimentWorkingDirectory=str(tmp_path / "file"))

    refused = nnictl("create", "-c", config, "-p", free_port(), expect=2)

    assert "not a writable folder" in refused.stderr


@pytest.mark.claim("platform", 43)
@pytest.mark.claim("platform", 44)
@pytest.mark.claim("platform", 48)
def test_stop_never_guesses(nnictl: Nnictl, tmp_path: Path) -> None:
    config = write_experiment(tmp_path, PATIENT)
    ports = [free_port() for _ in range(3)]
    one, two, three = (nnictl.create(config, port=port) for port in ports)

    unsaid = nnictl("stop", expect=1)

    assert one in unsaid.stderr
    assert two in unsaid.stderr
    nnictl("stop", "--port", ports[0])
    nnictl("stop", two[:7])
    assert [item["id"] for item in nnictl.json("experiment", "list", "--json")] == [three]
    nnictl("stop", f"{three[:3]}*")
    assert nnictl.json("experiment", "list", "--json") == []
    everything = nnictl.json("experiment", "list", "--all", "--json")
    states = {item["id"]: item["status"] for item in everything}
    assert {states[one], states[two], states[three]} == {"STOPPED"}
    nnictl("stop", one, expect=1)


@pytest.mark.claim("platform", 45)
def test_updates_change_the_profile_and_count(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = nnictl.create(write_experiment(tmp_path, PATIENT))
    space = tmp_path / "space.json"
    space.write_text(json.dumps({"x": {"_type": "uniform", "_value": [0, 0.5]}}))
    before = nnictl.json("experiment", "show", experiment_id)["revision"]

    nnictl("update", "concurrency", experiment_id, "-v", 4)
    nnictl("update", "duration", experiment_id, "--value", "2h")
    nnictl("update", "trialnum", "-v", 50)
    nnictl("update", "searchspace", experiment_id, "--filename", space)
    nnictl("update", "concurrency", experiment_id, "-v", 0, expect=2)

    profile = nnictl.json("experiment", "show", experiment_id)
    assert profile["revision"] == before + 4
    assert profile["params"]["trialConcurrency"] == 4
    assert profile["params"]["maxTrialNumber"] == 50
    assert profile["params"]["searchSpace"]["x"]["_value"] == [0, 0.5]


@pytest.mark.claim("platform", 47)
def test_killed_trial_is_user_canceled_and_cannot_be_killed_again(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    experiment_id = nnictl.create(write_experiment(tmp_path, PATIENT, trialConcurrency=1))
    trial = until(
        lambda: [t for t in nnictl.trials(experiment_id) if t["status"] == "RUNNING"], 60
    )[0]["trialJobId"]

    nnictl("trial", "kill", experiment_id, "--trial_id", trial)

    def killed() -> bool:
        return bool(nnictl.trials(experiment_id)[0]["status"] == "USER_CANCELED")

    until(killed, 60, "the trial to be cancelled")
    again = nnictl("trial", "kill", experiment_id, "-T", trial, expect=1)
    assert "ERROR: " in again.stderr


@pytest.mark.claim("platform", 51)
def test_delete_removes_the_folder_of_a_stopped_experiment(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = nnictl.create(write_experiment(tmp_path))
    nnictl("experiment", "delete", experiment_id, expect=1)
    nnictl("stop", experiment_id)
    assert folder(nnictl, experiment_id).exists()

    nnictl("experiment", "delete", experiment_id)

    assert not folder(nnictl, experiment_id).exists()
    listed = nnictl.json("experiment", "list", "--all", "--json")
    assert experiment_id not in {item["id"] for item in listed}


@pytest.mark.claim("platform", 52)
def test_logs_of_nnictl_are_printed(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = nnictl.create(write_experiment(tmp_path))
    path = Path(nnictl("log", "stdout", experiment_id, "--path").stdout.strip())
    stderr_path = Path(nnictl("log", "stderr", "-p").stdout.strip())
    stderr_path.write_text("".join(f"line {number}\n" for number in range(10)))

    assert path.is_file()
    assert nnictl("log", "stdout").stdout.startswith("INFO: ")
    assert nnictl("log", "stderr", "-t", 5).stdout.split("\n")[0] == "line 5"
    assert len(nnictl("log", "stderr", "-t", 5).stdout.splitlines()) == 5
    assert nnictl("log", "stderr", "-h", 5).stdout.splitlines()[-1] == "line 4"


@pytest.mark.claim("platform", 30)
def test_resumed_experiment_goes_on(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = nnictl.create(write_experiment(tmp_path))
    nnictl.shape.wait_for(experiment_id, "DONE")
    nnictl("stop", experiment_id)

    nnictl("resume", experiment_id, "--port", free_port())
    nnictl("update", "trialnum", experiment_id, "-v", 7)

    until(lambda: len(nnictl.trials(experiment_id)) == 7, 60, "two more trials")
    assert [trial["sequenceId"] for trial in nnictl.trials(experiment_id)] == list(range(7))


@pytest.mark.claim("platform", 31)
def test_viewed_experiment_can_be_read_and_not_changed(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = nnictl.create(write_experiment(tmp_path))
    nnictl.shape.wait_for(experiment_id, "DONE")
    nnictl("stop", experiment_id)

    nnictl("view", experiment_id, "--port", free_port())

    assert nnictl.status(experiment_id)["status"] == "VIEWED"
    assert len(nnictl.trials(experiment_id)) == 5
    nnictl("update", "concurrency", experiment_id, "-v", 3, expect=1)


@pytest.mark.claim("platform", 32)
def test_copied_folder_can_be_viewed_and_resumed_elsewhere(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = nnictl.create(write_experiment(tmp_path / "code"))
    nnictl.shape.wait_for(experiment_id, "DONE")
    nnictl("stop", experiment_id)
    copy = tmp_path / "copy" / experiment_id
    shutil.copytree(folder(nnictl, experiment_id), copy)
    nnictl("experiment", "delete", experiment_id)

    nnictl("view", experiment_id, "-p", free_port(), "--experiment_dir", copy)
    assert len(nnictl.trials(experiment_id)) == 5
    nnictl("stop", experiment_id)
    nnictl("resume", experiment_id, "-p", free_port(), "-e", copy)

    nnictl("update", "trialnum", experiment_id, "-v", 6)
    until(lambda: len(nnictl.trials(experiment_id)) == 6, 60, "one more trial")


@pytest.mark.claim("platform", 54)
def test_top_refreshes_until_interrupted(nnictl: Nnictl, tmp_path: Path) -> None:
    experiment_id = nnictl.create(write_experiment(tmp_path, PATIENT))
    process = nnictl.start("top", "-t", 1)
    assert process.stdout is not None
    heads = 0
    for line in process.stdout:
        heads += line.startswith(experiment_id)
        if heads == 2:
            break

    process.send_signal(signal.SIGINT)

    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.claim("platform", 29)
@pytest.mark.claim("platform", 55)
def test_foreground_shows_log_and_progress_and_ends_with_the_experiment(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    config = write_experiment(tmp_path, PATIENT)
    process = nnictl.start("create", "-c", config, "-p", free_port(), "--foreground")
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if "is RUNNING on" in line:
            break

    process.send_signal(signal.SIGINT)

    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    assert "stopped" in rest
    assert any("trials" in line and "running" in line for line in [*seen, *rest.splitlines()])
    assert nnictl.json("experiment", "list", "--json") == []
    newest = nnictl.json("experiment", "list", "--all", "--json")[0]
    assert newest["status"] == "STOPPED"
    assert newest["endTime"] >= newest["startTime"]

    def ended() -> bool:
        return not [p for p in psutil.process_iter() if str(tmp_path) in _command(p)]

    until(ended, 60, "the end of all processes of the experiment")


@pytest.mark.parametrize(("on_exit", "running"), [("stop", []), ("leave", ["RUNNING"])])
def test_term_in_the_foreground_stops_the_experiment_unless_it_is_to_be_left(
    nnictl: Nnictl, tmp_path: Path, on_exit: str, running: list[str]
) -> None:
    config = write_experiment(tmp_path, PATIENT)
    process = nnictl.start("create", "-c", config, "--foreground", "--on-exit", on_exit)
    assert process.stdout is not None
    for line in process.stdout:
        if "is RUNNING on" in line:
            break

    process.send_signal(signal.SIGTERM)

    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert [one["status"] for one in nnictl.json("experiment", "list", "--json")] == running


def _command(process: psutil.Process) -> str:
    try:
        return " ".join([*process.cmdline(), process.cwd()])
    except psutil.Error:
        return ""


@pytest.mark.claim("platform", 57)
@pytest.mark.parametrize(
    "words",
    [
        ("experiment", "show"), ("experiment", "status"), ("experiment", "delete"),
        ("trial", "ls"), ("webui", "url"), ("log", "stdout"), ("config", "show"),
        ("resume",), ("view",), ("stop",),
    ],
)  # fmt: skip
def test_unknown_experiment_is_a_plain_error(nnictl: Nnictl, words: tuple[str, ...]) -> None:
    nnictl("up")

    done = nnictl(*words, "nowhere1", expect=1)

    assert "nowhere1" in done.stderr
    assert "Traceback" not in done.stderr


def test_page_of_all_experiments_is_printed_when_none_runs(nnictl: Nnictl) -> None:
    nnictl("up")

    said = nnictl("webui", "url").stdout
    (address,) = nnictl.json("webui", "url", "--json")

    assert f"All experiments (none is running): {address}/?token=" in said
    assert "<html" in get(address)


def test_page_addresses_configuration_and_runners_are_printed(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    port = free_port()
    experiment_id = nnictl.create(write_experiment(tmp_path), port=port)

    assert f"http://127.0.0.1:{port}" in nnictl("webui", "url").stdout
    shown = nnictl.json("config", "show", "--json")
    assert shown["id"] == experiment_id
    assert shown["config"]["trialCodeDirectory"] == str(tmp_path)
    assert nnictl("config", "show").stdout.startswith(f"id: {experiment_id}")
    runner = until(lambda: nnictl.json("runner", "list", "--json"), 60)[0]
    assert nnictl.json("runner", "show", runner["id"], "--json")["id"] == runner["id"]
    nnictl("runner", "show", "nope", expect=1)


def test_doctor_finds_nothing_wrong(nnictl: Nnictl) -> None:
    nnictl("up")

    findings = nnictl.json("doctor", "--json")

    assert {finding["result"] for finding in findings} <= {"ok", "note"}


@pytest.mark.claim("platform", 23)
@pytest.mark.claim("hpo", 50)
def test_constructor_that_fails_ends_in_error_with_its_message(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    config = write_experiment(
        tmp_path, tuner={"className": "broken.Broken", "codeDirectory": str(tmp_path)}
    )
    (tmp_path / "broken.py").write_text(
        "from nni.tuner import Tuner\n"
        "class Broken(Tuner):\n"
        "    def __init__(self, needed):\n"
        "        self.needed = needed\n"
        "    def generate_parameters(self, parameter_id, **kwargs):\n"
        "        return {'x': 0}\n"
        "    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):\n"
        "        pass\n"
        "    def update_search_space(self, search_space):\n"
        "        pass\n"
    )

    experiment_id = nnictl.create(config)

    nnictl.shape.wait_for(experiment_id, "ERROR")
    status = nnictl.status(experiment_id)
    assert any("needed" in error for error in status["errors"])
    assert "needed" in (folder(nnictl, experiment_id) / "log" / "dispatcher.log").read_text()
    assert nnictl.trials(experiment_id) == []


@pytest.mark.claim("platform", 40)
def test_relative_root_folder_counts_from_the_configuration(nnictl: Nnictl, tmp_path: Path) -> None:
    config = write_experiment(tmp_path, experimentWorkingDirectory="work")

    experiment_id = nnictl.create(config)

    assert (tmp_path / "work" / experiment_id / "log" / "nnimanager.log").is_file()


@pytest.mark.claim("platform", 10)
@pytest.mark.claim("hpo", 52)
def test_exponent_without_a_dot_reaches_the_trial_as_a_number(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    script = "import nni\nassert nni.get_next_parameter() == {'x': 1e-05}\n"
    config = write_experiment(tmp_path, script, searchSpace=None, maxTrialNumber=1)
    fields = json.loads(config.read_text())
    space = "searchSpace: {x: {_type: choice, _value: [1e-5]}}\n"
    config.write_text(space + "".join(f"{key}: {json.dumps(fields[key])}\n" for key in fields))

    experiment_id = nnictl.create(config)

    nnictl.shape.wait_for(experiment_id, "DONE")
    assert [trial["status"] for trial in nnictl.trials(experiment_id)] == ["SUCCEEDED"]


JUDGED = """
import nni, signal
nni.get_next_parameter()
nni.report_intermediate_result(0.5)
signal.pause()
"""

STRICT = """
from pathlib import Path
from nni.algorithms.hpo.hyperopt_tuner import HyperoptTuner
from nni.assessor import Assessor, AssessResult

class Strict(Assessor):
    def assess_trial(self, trial_job_id, trial_history):
        return AssessResult.Bad

class Listening(HyperoptTuner):
    def __init__(self):
        super().__init__("random_search")

    def _write(self, line):
        with Path(__file__).with_name("heard").open("a") as file:
            file.write(line)

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        self._write("result ")

    def trial_end(self, parameter_id, success, **kwargs):
        self._write(f"{success} ")
"""


@pytest.mark.claim("platform", 22)
@pytest.mark.claim("hpo", 30)
def test_trial_that_the_assessor_dislikes_is_stopped_and_frees_its_slot(
    nnictl: Nnictl, tmp_path: Path
) -> None:
    config = write_experiment(
        tmp_path,
        JUDGED,
        trialConcurrency=1,
        maxTrialNumber=2,
        tuner={"className": "strict.Listening", "codeDirectory": "."},
        assessor={"className": "strict.Strict", "codeDirectory": "."},
    )
    (tmp_path / "strict.py").write_text(STRICT)

    experiment_id = nnictl.create(config)

    nnictl.shape.wait_for(experiment_id, "DONE")
    states = [trial["status"] for trial in nnictl.trials(experiment_id)]
    assert states == ["EARLY_STOPPED", "EARLY_STOPPED"]
    heard = tmp_path / "heard"
    # The experiment is DONE when its trials have ended; the tuner is notified later.
    until(
        lambda: heard.exists() and heard.read_text() == "False False ", 60, "the tuner to hear it"
    )
