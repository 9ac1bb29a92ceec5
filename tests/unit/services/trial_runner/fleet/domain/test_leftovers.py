from svc_trial_runner.fleet.domain.leftovers import Leftover, leftovers_of, unused


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
