"""Meaning of Slurm's words."""

import pytest

from svc_trial_runner.fleet.adapters.slurm.causes import (
    end_reason,
    job_reason,
    pending_cause,
    pending_reason,
    refusal,
)
from svc_trial_runner.fleet.adapters.slurm.listings import SlurmJob
from svc_trial_runner.fleet.domain.agents import AgentName


def job(state: str, reason: str = "", exit_code: str = "") -> SlurmJob:
    return SlurmJob("1", AgentName("0123abcd", "exp-a", 7), state, reason, "", exit_code)


def test_reason_has_slurms_words_and_their_meaning() -> None:
    shown = pending_reason(job("PENDING", "PartitionTimeLimit"))

    assert shown == (
        "PartitionTimeLimit: it asks for more time than the partition allows; lower timeLimit"
    )


@pytest.mark.parametrize(
    ("reason", "permanent"),
    [
        ("Priority", False),
        ("Resources", False),
        ("ReqNodeNotAvail, UnavailableNodes:node1", False),
        ("QOSMaxJobsPerUserLimit", False),
        ("AssocGrpCpuLimit", False),
        ("PartitionConfig", True),
        ("PartitionTimeLimit", True),
        ("InvalidQOS", True),
        ("InvalidAccount", True),
        ("BadConstraints", True),
    ],
)
def test_reasons_that_time_does_not_change_are_known(reason: str, permanent: bool) -> None:
    cause = pending_cause(reason)

    assert cause.text
    assert cause.permanent is permanent


def test_unknown_reason_is_shown_as_it_is() -> None:
    assert pending_reason(job("PENDING", "SomethingNew")) == "SomethingNew"


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("TIMEOUT", "time limit"),
        ("PREEMPTED", "higher priority"),
        ("NODE_FAIL", "node failed"),
        ("OUT_OF_MEMORY", "raise memory"),
        ("CANCELLED", "cancelled"),
        ("BOOT_FAIL", "did not start"),
    ],
)
def test_end_state_is_explained(state: str, word: str) -> None:
    shown = end_reason(job(state))

    assert shown.startswith(state)
    assert word in shown


def test_end_in_order_has_no_reason() -> None:
    assert end_reason(job("COMPLETED", "None", "0:0")) == ""


def test_failed_job_shows_its_exit_code() -> None:
    assert end_reason(job("FAILED", "NonZeroExitCode", "3:0")) == "FAILED with exit code 3"


def test_job_that_was_killed_shows_the_signal() -> None:
    assert end_reason(job("FAILED", "", "0:9")) == "FAILED with signal 9"


def test_exit_code_of_a_missing_python_is_explained() -> None:
    assert "setupLines" in end_reason(job("FAILED", "NonZeroExitCode", "127:0"))


def test_exit_code_of_a_missing_folder_is_explained() -> None:
    assert "set home to a folder" in end_reason(job("FAILED", "NonZeroExitCode", "72:0"))


def test_job_that_slurm_refused_when_it_was_submitted_shows_the_reason() -> None:
    assert end_reason(job("FAILED", "BadConstraints", "0:1")).startswith("FAILED (BadConstraints)")


def test_running_job_has_no_reason() -> None:
    assert job_reason(job("RUNNING", "None")) == ""


def test_suspended_job_shows_that_it_is() -> None:
    assert job_reason(job("SUSPENDED")) == "SUSPENDED"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("sbatch: error: invalid partition specified: nope", "partition"),
        (("sbatch: error: Batch job submission failed: Invalid account or account/partition"
         " combination specified"), "account"),
        ("sbatch: error: Batch job submission failed: Invalid qos specification", "qos"),
        ("sbatch: error: Invalid generic resource (gres) specification", "gres"),
        ("sbatch: error: Invalid --time specification", "timeLimit"),
        ("sbatch: error: Memory specification can not be satisfied", "memory"),
        ("sbatch: unrecognized option '--foo'\nTry \"sbatch --help\"", "options"),
    ],
)  # fmt: skip
def test_refusal_names_the_field_in_slurms_words(words: str, field: str) -> None:
    cause = refusal(words)

    assert (cause.field, cause.permanent) == (field, True)
    assert words.splitlines()[0] in cause.text


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
         "controller does not answer"),
        ("sbatch: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\"",
         "authentication does not work"),
        ("cat: write error: No space left on device", "full"),
    ],
)  # fmt: skip
def test_refusal_of_the_cluster_may_go_away(words: str, meaning: str) -> None:
    cause = refusal(words)

    assert meaning in cause.text
    assert not cause.permanent
    assert cause.field == ""


def test_command_without_words_has_a_text() -> None:
    assert refusal("").text == "the command failed without a word"


def test_words_of_a_refusal_are_shortened_to_400_characters() -> None:
    assert refusal("a" * 500).text == "a" * 400
    assert refusal(" a \n\n b ").text == "a b"


@pytest.mark.parametrize(
    ("state", "reason", "code", "shown"),
    [
        ("FAILED", "", "", "FAILED"),
        ("FAILED", "", "0:0", "FAILED"),
        ("FAILED", "", "3", "FAILED with exit code 3"),
        ("TIMEOUT", "TimeLimit", "0:0",
         "TIMEOUT (TimeLimit): its time limit was reached; raise timeLimit"),
        ("CANCELLED", "", "0:15", "CANCELLED with signal 15: it was cancelled"),
        ("NODE_FAIL", "", "127:0", "NODE_FAIL with exit code 127: its node failed"),
    ],
)  # fmt: skip
def test_end_has_state_reason_and_code(state: str, reason: str, code: str, shown: str) -> None:
    assert end_reason(job(state, reason, code)) == shown


@pytest.mark.parametrize(
    ("state", "shown"),
    [("CONFIGURING", ""), ("COMPLETING", "COMPLETING"), ("COMPLETED", ""), ("PENDING", "")],
)
def test_state_that_says_all_has_no_reason(state: str, shown: str) -> None:
    assert job_reason(job(state)) == shown
