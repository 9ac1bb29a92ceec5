"""Output of Slurm's commands, as version 22.05 prints it, and damaged."""

import pytest

from svc_trial_runner.fleet.adapters.slurm.listings import (
    Cluster,
    ComputeNode,
    JobStage,
    Partition,
    SlurmJob,
    TruncatedOutputError,
    long_state,
    parse_fields,
    parse_nodes,
    parse_partitions,
    parse_sacct,
    parse_scontrol_jobs,
    parse_squeue,
    read_cluster,
)
from svc_trial_runner.fleet.domain.agents import AgentName

ONE = "nni-0123abcd-exp-a-7"
ARRAY = f"{ONE}.array"

SQUEUE = f"""\
12|{ONE}|PENDING||Nodes required for job are DOWN, DRAINED or reserved for jobs
13|train.sh|RUNNING|node1|None
14_0|{ARRAY}|RUNNING|node1|None
14_3|{ARRAY}|CANCELLED|node1|None
15_[4,6-7]|{ARRAY}|PENDING||Priority
"""
SCONTROL_JOB = (
    f"JobId=12 JobName={ONE} UserId=ann(1000) MCS_label=N/A Account=(null) QOS=(null)"
    " JobState=PENDING Reason=ReqNodeNotAvail,_UnavailableNodes:node1 Dependency=(null)"
    " ExitCode=0:0 NewField=x TimeLimit=00:10:00 NodeList= NumNodes=1 ReqB:S:C:T=0:0:*:*"
    " Command=/home/ann/a b=c.sh Comment=x JobState=RUNNING y Power= \n"
)
PARTITIONS = """\
PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL Default=YES QoS=N/A \
DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=00:10:00 MaxCPUsPerNode=UNLIMITED Nodes=node1 \
PreemptMode=OFF State=UP TotalCPUs=4 DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
PartitionName=gpu AllowAccounts=lab,guests DenyQos=low Default=NO DefaultTime=01:00:00 \
MaxTime=UNLIMITED MaxCPUsPerNode=16 State=DOWN MaxMemPerNode=64000
"""
NODES = """\
NodeName=node1 Arch=x86_64 CPUAlloc=0 CPUEfctv=4 CPUTot=4 Gres=gpu:a100:2(S:0) \
NodeAddr=127.0.0.1 NodeHostName=vm OS=Linux 6.18.44 #1 SMP @0 RealMemory=500 \
State=IDLE+DRAIN Partitions=main,gpu Reason=count reported lower than configured (0 < 2) [root@x]
"""


def agent(number: int) -> AgentName:
    return AgentName("0123abcd", "exp-a", number)


def test_jobs_of_agents_are_found_in_a_queue() -> None:
    jobs = parse_squeue(SQUEUE)

    assert [(job.id, job.agent.number, job.state, job.nodes) for job in jobs] == [
        ("12", 7, "PENDING", ""),
        ("14_0", 7, "RUNNING", "node1"),
        ("14_3", 10, "CANCELLED", "node1"),
        ("15_4", 11, "PENDING", ""),
        ("15_6", 13, "PENDING", ""),
        ("15_7", 14, "PENDING", ""),
    ]


def test_reason_is_kept_whole() -> None:
    (first, *_) = parse_squeue(SQUEUE)

    assert first.reason == "Nodes required for job are DOWN, DRAINED or reserved for jobs"


def test_reason_may_hold_the_separator() -> None:
    (job,) = parse_squeue(f"1|{ONE}|PENDING||a|b\n")

    assert job.reason == "a|b"


def test_lines_of_another_form_are_passed_over() -> None:
    assert parse_squeue(f"warning: slow\n\n1|{ONE}|PENDING\nx|{ONE}|RUNNING||None\n") == []


@pytest.mark.parametrize("parse", [parse_squeue, parse_sacct, parse_scontrol_jobs])
def test_output_that_was_cut_is_an_error(parse: object) -> None:
    assert callable(parse)
    with pytest.raises(TruncatedOutputError):
        parse(f"12|{ONE}|RUNN")


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("PD", "PENDING"),
        ("CANCELLED by 1000", "CANCELLED"),
        ("COMPLETED+", "COMPLETED"),
        ("OOM", "OUT_OF_MEMORY"),
        ("running", "RUNNING"),
        ("NEW_STATE", "NEW_STATE"),
    ],
)
def test_states_have_one_form(text: str, state: str) -> None:
    assert long_state(text) == state


@pytest.mark.parametrize(
    ("state", "stage"),
    [
        ("PENDING", JobStage.PENDING),
        ("REQUEUED", JobStage.PENDING),
        ("CONFIGURING", JobStage.STARTING),
        ("RUNNING", JobStage.RUNNING),
        ("COMPLETING", JobStage.RUNNING),
        ("SUSPENDED", JobStage.RUNNING),
        ("TIMEOUT", JobStage.ENDED),
        ("PREEMPTED", JobStage.ENDED),
        ("NODE_FAIL", JobStage.ENDED),
        ("OUT_OF_MEMORY", JobStage.ENDED),
    ],
)
def test_states_are_stages_of_an_agent(state: str, stage: JobStage) -> None:
    assert SlurmJob("1", agent(7), state).stage is stage


def test_unknown_state_counts_as_running_so_that_no_agent_is_started_twice() -> None:
    assert SlurmJob("1", agent(7), "NEW_STATE").stage is JobStage.RUNNING


def test_ended_jobs_are_found_in_the_accounting() -> None:
    jobs = parse_sacct(
        f"12|{ONE}|TIMEOUT|0:0|node1\n"
        f"14_3|{ARRAY}|CANCELLED by 0|0:15|None assigned\n"
        "13|train.sh|COMPLETED|0:0|node1\n"
        "cut|off\n"
    )

    assert jobs == [
        SlurmJob("12", agent(7), "TIMEOUT", "", "node1", "0:0"),
        SlurmJob("14_3", agent(10), "CANCELLED", "", "", "0:15"),
    ]


def test_last_line_of_a_requeued_job_counts() -> None:
    (job,) = parse_sacct(f"12|{ONE}|PREEMPTED|0:0|node1\n12|{ONE}|RUNNING|0:0|node2\n")

    assert (job.state, job.nodes) == ("RUNNING", "node2")


def test_job_is_read_from_its_fields() -> None:
    (job,) = parse_scontrol_jobs(SCONTROL_JOB)

    assert job == SlurmJob(
        "12", agent(7), "PENDING", "ReqNodeNotAvail, UnavailableNodes:node1", "", "0:0"
    )


def test_tasks_of_an_array_are_read_from_its_fields() -> None:
    jobs = parse_scontrol_jobs(
        f"JobId=12 ArrayJobId=12 ArrayTaskId=3,5-6 JobName={ARRAY} JobState=PENDING\n"
        f"JobId=13 ArrayJobId=12 ArrayTaskId=0 JobName={ARRAY} JobState=COMPLETED ExitCode=1:0\n"
    )

    assert [(job.id, job.agent.number, job.exit_code) for job in jobs] == [
        ("12_3", 10, ""),
        ("12_5", 12, ""),
        ("12_6", 13, ""),
        ("12_0", 7, "1:0"),
    ]


def test_values_may_hold_blanks() -> None:
    fields = parse_fields("OS=Linux 6 #1 @0 State=IDLE Empty= Last=a b")

    assert fields == {"OS": "Linux 6 #1 @0", "State": "IDLE", "Empty": "", "Last": "a b"}


def test_partitions_have_their_limits() -> None:
    assert parse_partitions(PARTITIONS) == [
        Partition("main", is_default=True, max_time_s=600),
        Partition(
            "gpu",
            is_up=False,
            default_time_s=3600,
            max_cpus_per_node=16,
            max_memory_mebibytes=64_000,
            accounts=("lab", "guests"),
            denied_qos=("low",),
        ),
    ]


def test_nodes_have_their_resources() -> None:
    assert parse_nodes(NODES) == [
        ComputeNode("node1", "127.0.0.1", "vm", 4, 500, {"gpu": 2}, ("main", "gpu"))
    ]


@pytest.mark.parametrize(
    ("output", "cluster"),
    [
        (
            (
                "Configuration data as of now\nAccountingStorageType = accounting_storage/none\n"
                "MaxArraySize            = 1001\n"
            ),
            Cluster(has_accounting=False, array_index_limit=1000),
        ),
        (
            "AccountingStorageType = (null)/slurmdbd\nMaxArraySize = 0\nKillWait = 7 sec\n",
            Cluster(has_accounting=True, array_index_limit=0, kill_wait_s=7.0),
        ),
        ("AccountingStorageType = (null)\n", Cluster(has_accounting=False, array_index_limit=0)),
    ],
)
def test_settings_of_the_cluster_are_read(output: str, cluster: Cluster) -> None:
    assert read_cluster(output) == cluster


def test_fields_that_are_missing_have_no_limit() -> None:
    (partition,) = parse_partitions("PartitionName=main\nNodes=n1\n")
    (node,) = parse_nodes("NodeName=n1\nCPUTot=4\n")

    assert partition == Partition("main")
    assert partition.job_time_s is None
    assert node == ComputeNode("n1", gres={})


def test_end_of_a_cut_output_is_shown_by_its_last_80_characters() -> None:
    with pytest.raises(TruncatedOutputError) as caught:
        parse_squeue("b" + "a" * 80)

    assert str(caught.value) == "a" * 80


def test_usual_time_of_a_partition_counts_before_its_limit() -> None:
    assert Partition("main", max_time_s=600, default_time_s=60).job_time_s == 60
    assert Partition("main", max_time_s=600).job_time_s == 600


STATES = {
    JobStage.PENDING: "PENDING REQUEUED REQUEUE_FED REQUEUE_HOLD SPECIAL_EXIT RESV_DEL_HOLD",
    JobStage.STARTING: "CONFIGURING POWER_UP_NODE",
    JobStage.RUNNING: "RUNNING COMPLETING RESIZING SIGNALING STAGE_OUT STOPPED SUSPENDED",
    JobStage.ENDED: (
        "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY "
        "PREEMPTED RECONFIG_FAIL REVOKED TIMEOUT"
    ),
}


@pytest.mark.parametrize(
    ("state", "stage"), [(state, stage) for stage, text in STATES.items() for state in text.split()]
)
def test_each_state_of_slurm_has_a_stage(state: str, stage: JobStage) -> None:
    assert SlurmJob("1", agent(7), state).stage is stage


@pytest.mark.parametrize(
    ("short", "state"),
    [
        ("BF", "BOOT_FAIL"), ("CA", "CANCELLED"), ("CD", "COMPLETED"), ("CF", "CONFIGURING"),
        ("CG", "COMPLETING"), ("DL", "DEADLINE"), ("F", "FAILED"), ("NF", "NODE_FAIL"),
        ("PR", "PREEMPTED"), ("R", "RUNNING"), ("RD", "RESV_DEL_HOLD"), ("RF", "REQUEUE_FED"),
        ("RH", "REQUEUE_HOLD"), ("RQ", "REQUEUED"), ("RS", "RESIZING"), ("RV", "REVOKED"),
        ("S", "SUSPENDED"), ("SE", "SPECIAL_EXIT"), ("SI", "SIGNALING"), ("SO", "STAGE_OUT"),
        ("ST", "STOPPED"), ("TO", "TIMEOUT"), ("r", "RUNNING"), (" pd ", "PENDING"),
    ],
)  # fmt: skip
def test_short_states_are_those_of_slurm(short: str, state: str) -> None:
    assert long_state(short) == state


@pytest.mark.parametrize(
    "none", ["", "(null)", "N/A", "n/a", "None", "NONE", "UNLIMITED", " None "]
)
def test_words_for_nothing_are_no_reason(none: str) -> None:
    (job,) = parse_squeue(f"12|{ONE}|RUNNING|n1|{none}\n")

    assert (job.reason, job.nodes) == ("", "n1")


def test_node_of_a_queued_job_has_no_blanks() -> None:
    (job,) = parse_squeue(f" 12 |{ONE}| R | n1 | Priority \n")

    assert (job.id, job.state, job.nodes, job.reason) == ("12", "RUNNING", "n1", "Priority")


def test_empty_output_has_no_jobs() -> None:
    assert parse_squeue("") == parse_sacct("") == parse_scontrol_jobs("") == []


def test_accounting_may_have_more_columns() -> None:
    assert parse_sacct(f"12|{ONE}|FAILED|3:0|n1|more\n") == [
        SlurmJob("12", agent(7), "FAILED", "", "n1", "3:0")
    ]


def test_tasks_of_an_array_are_read_from_the_accounting() -> None:
    jobs = parse_sacct(f"14_[1-2]|{ARRAY}|PENDING|0:0|None assigned\n")

    assert [(job.id, job.agent.number, job.nodes) for job in jobs] == [
        ("14_1", 8, ""), ("14_2", 9, "")
    ]  # fmt: skip


def test_job_without_a_state_counts_as_running() -> None:
    (job,) = parse_scontrol_jobs(f"JobId=12 JobName={ONE}\n")

    assert (job.state, job.stage, job.exit_code, job.reason) == (
        "UNKNOWN", JobStage.RUNNING, "", ""
    )  # fmt: skip


@pytest.mark.parametrize("line", ["JobId=x JobName=a", f"JobName={ONE}", f"JobId= JobName={ONE}"])
def test_job_without_a_number_is_passed_over(line: str) -> None:
    assert parse_scontrol_jobs(f"{line}\n") == []


@pytest.mark.parametrize(
    ("state", "is_up"), [("UP", True), ("INACTIVE", True), ("DOWN", False), ("DRAIN", False)]
)
def test_partition_takes_jobs_if_it_is_up_or_inactive(state: str, *, is_up: bool) -> None:
    (partition,) = parse_partitions(f"PartitionName=a State={state}\n")

    assert partition.is_up is is_up


def test_lists_of_a_partition_are_read() -> None:
    (partition,) = parse_partitions(
        "PartitionName=a Default=NO AllowAccounts=a,b DenyAccounts=c AllowQos=d DenyQos=e,f"
        " MaxMemPerNode=1000 MaxCPUsPerNode=7 DefaultTime=00:01:00 MaxTime=1-00:00:00\n"
    )

    assert partition == Partition(
        "a", max_time_s=86_400, default_time_s=60, max_cpus_per_node=7, max_memory_mebibytes=1000,
        accounts=("a", "b"), denied_accounts=("c",), qos=("d",), denied_qos=("e", "f"),
    )  # fmt: skip


@pytest.mark.parametrize("value", ["", "(null)", "ALL", "N/A"])
def test_list_of_no_names_or_all_is_empty(value: str) -> None:
    (partition,) = parse_partitions(f"PartitionName=a AllowAccounts={value} DenyQos={value}\n")

    assert (partition.accounts, partition.denied_qos) == ((), ())


@pytest.mark.parametrize(
    ("output", "cluster"),
    [
        ("", Cluster(has_accounting=False, array_index_limit=0, kill_wait_s=30.0)),
        ("MaxArraySize = 1\n", Cluster(has_accounting=False, array_index_limit=0)),
        ("KillWait = 0 sec\n", Cluster(has_accounting=False, array_index_limit=0)),
        ("KillWait=45\nAccountingStorageType=accounting_storage/slurmdbd",
         Cluster(has_accounting=True, array_index_limit=0, kill_wait_s=45.0)),
    ],
)  # fmt: skip
def test_missing_settings_of_the_cluster_have_their_usual_values(
    output: str, cluster: Cluster
) -> None:
    assert read_cluster(output) == cluster
