from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.domain.leftovers import Leftover, leftovers_of, unused, well_named


def test_names_of_the_installation_are_sorted_by_pool() -> None:
    names = [
        "nni-0123abcd-gpus-2",
        "nni-0123abcd-gpus-1",
        "nni-0123abcd-gpus-2-1",
        "nni-9876dcba-gpus-1",
        "of-another-program",
    ]

    assert leftovers_of(names, "0123abcd", "slurm", pools=["desks"]) == [
        Leftover("desks", (), "slurm"),
        Leftover("gpus", ("nni-0123abcd-gpus-1", "nni-0123abcd-gpus-2"), "slurm"),
        Leftover("gpus-2", ("nni-0123abcd-gpus-2-1",), "slurm"),
    ]


def test_pools_that_exist_keep_what_they_have() -> None:
    found = [Leftover("exp-live"), Leftover("exp-old")]

    assert unused(found, {"exp-live"}) == [Leftover("exp-old")]


def test_names_that_lead_elsewhere_on_the_machine_of_the_fleet_are_left_out() -> None:
    good = [Leftover("gpus"), Leftover("exp-1", key="slurm-2")]
    bad = [
        Leftover("../../home"),
        Leftover(".."),
        Leftover(""),
        Leftover("gpus", key=".."),
        Leftover("gpus", key="a/../../b"),
    ]

    assert well_named([*bad, *good]) == good


def test_agents_of_another_pool_are_not_those_of_a_leftover() -> None:
    left = Leftover("exp-old", ("nni-0123abcd-exp-live-1", "nni-0123abcd-exp-old-1", "other"))

    assert left.own_agents == [AgentName("0123abcd", "exp-old", 1)]


def test_leftover_is_neither_in_use_nor_removed_at_first() -> None:
    (found,) = leftovers_of(["nni-0123abcd-gpus-1"], "0123abcd")

    assert (found.key, found.in_use, found.removed) == ("", False, False)
