import pytest

from svc_common.errors import InvalidArgumentError
from svc_trial_runner.fleet.domain.agents import (
    AgentCredentials,
    AgentName,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
    PlatformSection,
    parse_agent_name,
)


@pytest.mark.parametrize("pool", ["exp-a1b2c3d4", "gpu", "a-1-2", "3", "p" * 47])
def test_name_is_parsed_back(pool: str) -> None:
    name = AgentName("0123abcd", pool, 12)

    assert parse_agent_name(str(name)) == name


@pytest.mark.parametrize(
    "foreign",
    [
        "",
        "nni",
        "nni-x-1",
        "nni-0123abcd-1",
        "nni-0123abcd-P-1",
        "job-0123abcd-p-1",
        "nni-0123abcd-p-01",  # an agent's number, in another form
    ],
)
def test_job_of_others_is_no_agent(foreign: str) -> None:
    assert parse_agent_name(foreign) is None


@pytest.mark.parametrize("end", [f"{'p' * 60}-1", f"{'p' * 48}-10", f"p-{'1' * 5000}"])
def test_name_that_is_longer_than_ours_can_be_is_no_agent(end: str) -> None:
    assert parse_agent_name(f"nni-0123abcd-{end}") is None


@pytest.mark.parametrize(
    ("installation", "pool", "number"),
    [
        ("short", "p", 0),
        ("0123ABCD", "p", 0),
        ("0123abcd", "", 0),
        ("0123abcd", "P", 0),
        ("0123abcd", "p-", 0),
        ("0123abcd", "p_q", 0),
        ("0123abcd", "p", -1),
        ("0123abcd", "p" * 48, 10),
        ("0123abcd", "p" * 48, 100),
    ],
)
def test_name_that_a_platform_cannot_have_is_refused(
    installation: str, pool: str, number: int
) -> None:
    with pytest.raises(InvalidArgumentError):
        AgentName(installation, pool, number)


def test_secrets_are_not_shown() -> None:
    credentials = AgentCredentials("user", "hidden-1", "hidden-2")
    section = PlatformSection("remote", {}, {"machineList[0].password": "hidden-3"})

    assert "hidden" not in f"{credentials} {section}"


@pytest.mark.parametrize(("installation", "pool"), [("x" * 81, "p"), ("0123abcd", "X" * 81)])
def test_long_part_of_a_name_is_shown_in_part(installation: str, pool: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        AgentName(installation, pool, 1)

    assert len(str(refusal.value.value)) == 80


def test_first_agent_of_a_pool_may_have_the_number_zero() -> None:
    assert str(AgentName("0123abcd", "p", 0)) == "nni-0123abcd-p-0"


def test_failed_launch_may_be_tried_again_and_a_broken_rule_may_not() -> None:
    name = AgentName("0123abcd", "p", 1)

    assert not LaunchFailure(name, "away").permanent
    assert PlatformProblem("host", "must be given").permanent


def test_agent_that_the_fleet_did_not_order_runs_one_trial_at_once() -> None:
    assert PlatformAgent(AgentName("0123abcd", "p", 1), AgentPhase.RUNNING).slots == 1


def test_section_without_shared_storage_has_none() -> None:
    assert PlatformSection("slurm", {}).shared_storage is None


def test_shared_storage_has_the_key_of_its_account() -> None:
    options = {
        "sharedStorage": {
            "storageType": "AzureBlob",
            "localMountPoint": "/mnt",
            "remoteMountPoint": "mnt",
            "localMounted": "usermount",
            "storageAccountName": "lab",
            "containerName": "trials",
        }
    }

    storage = PlatformSection(
        "aml", options, {"sharedStorage.storageAccountKey": "key"}
    ).shared_storage

    assert storage is not None
    assert (storage.account, storage.account_key) == ("lab", "key")
