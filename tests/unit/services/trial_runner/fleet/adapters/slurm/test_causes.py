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


LIMIT = "a limit of the account or the quality of service is reached"


@pytest.mark.parametrize(
    "words",
    [
        (
            "sbatch: error: QOSMaxSubmitJobPerUserLimit\n"
            "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job "
            "submit limit, user's size and/or time limits)"
        ),
        (
            "sbatch: error: AssocMaxSubmitJobLimit\n"
            "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job "
            "submit limit, user's size and/or time limits)"
        ),
    ],
)
def test_limit_of_jobs_that_are_submitted_may_go_away(words: str) -> None:
    cause = refusal(words)

    assert cause.text.startswith(f"{LIMIT}: sbatch: error: ")
    assert (cause.permanent, cause.field) == (False, "")
    assert cause.remedy == "lower the pool's limit of agents, or wait for jobs that run"


@pytest.mark.parametrize(
    ("words", "meaning", "remedy", "is_unreachable"),
    [
        ("Connection refused", "Slurm's controller does not answer",
         "scontrol ping; jobs that run are not affected", True),
        ("Connection timed out", "Slurm's controller does not answer",
         "scontrol ping; jobs that run are not affected", True),
        ("Socket timed out on send/recv operation", "Slurm's controller does not answer",
         "scontrol ping; jobs that run are not affected", True),
        ("Zero Bytes were transmitted or received", "Slurm's controller does not answer",
         "scontrol ping; jobs that run are not affected", True),
        ("Transport endpoint is not connected", "Slurm's controller does not answer",
         "scontrol ping; jobs that run are not affected", True),
        ("Protocol authentication error", "Slurm's authentication does not work on this machine",
         "ask the administrator: is munged running, with the key of the cluster?", True),
        ("Requested node configuration is not available", "no node has what is asked for",
         "lower the request, or choose another partition", False),
        ("Requested nodes are busy", "no node is free now", "", False),
        ("allocation failure", "no node is free now", "", False),
        ("Disk quota exceeded", "the file system of the home folder is full",
         "free some room there, or set home", False),
        ("Slurm temporarily unable to accept job, sleeping and retrying",
         "Slurm takes no jobs at the moment", "", False),
        ("Resource temporarily unavailable", "Slurm takes no jobs at the moment", "", False),
    ],
)  # fmt: skip
def test_refusal_that_may_go_away_is_explained(
    words: str, meaning: str, remedy: str, *, is_unreachable: bool
) -> None:
    cause = refusal(f"sbatch: error: {words}")

    assert cause.text == f"{meaning}: sbatch: error: {words}"
    assert (cause.remedy, cause.permanent, cause.field) == (remedy, False, "")
    assert cause.is_unreachable is is_unreachable


@pytest.mark.parametrize(
    ("words", "meaning", "remedy", "field"),
    [
        ("invalid partition specified: x", "there is no such partition", "sinfo lists them",
         "partition"),
        ("Invalid account or account/partition combination specified",
         "account, partition or user are not allowed together",
         "sacctmgr show associations user=$USER", "account"),
        ("Invalid qos specification", "the quality of service is not allowed",
         "sacctmgr show qos", "qos"),
        ("Invalid generic resource (gres) specification", "no such generic resource",
         "sinfo -o '%P %G' lists them", "gres"),
        ("Requested time limit is invalid (missing or exceeds some limit)",
         "the time limit is not allowed", "sinfo -o '%P %l' lists the limits", "timeLimit"),
        ("Memory required by task is not available", "no node has so much memory",
         "sinfo -o '%P %m' lists it", "memory"),
        ("Invalid feature specification", "sbatch does not know an option", "sbatch --help",
         "options"),
        ("invalid option -- 'z'", "sbatch does not know an option", "sbatch --help", "options"),
    ],
)  # fmt: skip
def test_refusal_of_an_option_is_explained(
    words: str, meaning: str, remedy: str, field: str
) -> None:
    cause = refusal(words)

    assert cause.text == f"{meaning}: {words}"
    assert (cause.remedy, cause.field, cause.permanent) == (remedy, field, True)
    assert not cause.is_unreachable


@pytest.mark.parametrize(
    ("reason", "text", "remedy", "field"),
    [
        ("Priority", "jobs of higher priority are before it", "", ""),
        ("Resources", "it waits for free resources of the partition", "", ""),
        ("BeginTime", "it was requeued and waits until it may start again", "", ""),
        ("DependencyNeverSatisfied", "it waits for another job",
         "look at --dependency in options", ""),
        ("JobHeldUser", "it is held", "scontrol release JOB", ""),
        ("JobHeldAdmin", "it is held", "scontrol release JOB", ""),
        ("JobArrayTaskLimit", "its array runs as many tasks at once as it may", "", ""),
        ("Nodes required for job are DOWN, DRAINED",
         "its nodes are down, drained or reserved", "sinfo shows their state", ""),
        ("PartitionDown", "the partition takes no jobs now", "sinfo shows partitions that do", ""),
        ("PartitionInactive", "the partition takes no jobs now",
         "sinfo shows partitions that do", ""),
        ("PartitionTimeLimit", "it asks for more time than the partition allows",
         "lower timeLimit", "timeLimit"),
        ("PartitionNodeLimit", "it asks for more than the partition allows",
         "lower the request, or choose another partition", ""),
        ("BadConstraints", "no node has what it asks for",
         "lower the request, or choose another partition", ""),
        ("InvalidAccount", "the account is not valid", "sacctmgr show associations user=$USER",
         "account"),
        ("QOSNotAllowed", "the quality of service is not valid for it", "sacctmgr show qos",
         "qos"),
        ("QOSGrpCpuLimit", LIMIT, "lower the pool's limit of agents, or wait for jobs that run",
         ""),
        ("MaxSubmitJobsLimit", LIMIT,
         "lower the pool's limit of agents, or wait for jobs that run", ""),
        ("Licenses", "it waits for a license", "", ""),
        ("Reservation", "it waits for its reservation", "", ""),
        ("NodeDown", "a node that it needs is down", "", ""),
    ],
)  # fmt: skip
def test_reason_of_a_wait_is_explained(reason: str, text: str, remedy: str, field: str) -> None:
    cause = pending_cause(reason)

    assert (cause.text, cause.remedy, cause.field) == (text, remedy, field)


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("DEADLINE", "DEADLINE: its deadline was reached"),
        ("REVOKED", "REVOKED: another cluster of the federation runs it"),
        ("LAUNCH_FAILED",
         "LAUNCH_FAILED: it could not be started on its node; the job's log says more"),
        ("RECONFIG_FAIL", "RECONFIG_FAIL: its node could not be configured"),
        ("PREEMPTED", "PREEMPTED: it was preempted by a job of higher priority"),
        ("BOOT_FAIL", "BOOT_FAIL: its node did not start"),
        ("OUT_OF_MEMORY", "OUT_OF_MEMORY: it used more memory than it asked for; raise memory"),
    ],
)  # fmt: skip
def test_end_of_a_job_is_explained(state: str, shown: str) -> None:
    assert end_reason(job(state)) == shown
    assert job_reason(job(state)) == shown


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("72:0", ("the folder of NNI is not on the compute node; set home to a folder on a file"
         " system that login and compute nodes share")),
        ("126:0", "a program of the script cannot be run; the job's log names it"),
        ("127:0", ("a program of the script was not found on the compute node; set python,"
         " pythonPath or setupLines so that Python >= 3.11 is found there")),
    ],
)  # fmt: skip
def test_exit_code_of_the_script_is_explained(code: str, shown: str) -> None:
    status = code.partition(":")[0]

    assert end_reason(job("FAILED", "NonZeroExitCode", code)) == (
        f"FAILED with exit code {status}: {shown}"
    )


def test_reason_without_words_is_none() -> None:
    assert pending_reason(job("PENDING")) == ""


@pytest.mark.parametrize(
    ("reason", "code", "shown"),
    [
        ("BadConstraints", "0:1", ("FAILED (BadConstraints) with signal 1: no node has what it"
         " asks for; lower the request, or choose another partition")),
        ("BadConstraints", "126:0", ("FAILED (BadConstraints) with exit code 126: a program of the"
         " script cannot be run; the job's log names it")),
        ("SomethingNew", "", "FAILED (SomethingNew)"),
    ],
)  # fmt: skip
def test_reason_of_a_failed_job_is_explained_unless_its_exit_code_says_more(
    reason: str, code: str, shown: str
) -> None:
    assert end_reason(job("FAILED", reason, code)) == shown
