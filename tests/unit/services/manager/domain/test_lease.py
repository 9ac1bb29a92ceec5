from collections import Counter

from svc_manager.domain.lease import (
    TURN_S,
    Lease,
    ManagerId,
    TakeoverSchedule,
    first_choice,
    living_managers,
)


def held(*names: str, by: str = "other") -> dict[str, Lease]:
    """Return the leases of a manager, its presence included."""
    owner = str(ManagerId(by, "h:1", "h:2"))
    return {name: Lease(name, owner, 1) for name in (*names, f"manager/{by}")}


def test_manager_is_read_back_from_the_owner_of_a_lease() -> None:
    manager = ManagerId("boot1", "host:7501", "host:8080")

    assert ManagerId.of(str(manager)) == manager
    assert ManagerId.of(str(ManagerId("alone"))) == ManagerId("alone")
    assert ManagerId.of("other owner's text") == ManagerId("other", "owner's", "text")


def test_all_managers_agree_who_comes_first_and_experiments_spread() -> None:
    managers = ["a", "b", "c"]
    experiments = [f"exp{number:05d}" for number in range(300)]

    choices = [first_choice(name, managers) for name in experiments]

    assert choices == [first_choice(name, managers[::-1]) for name in experiments]
    # 300 fair choices of 3: a share is 100 with a deviation of 8; 50 is 6 of them away.
    assert min(Counter(choices).values()) > 50
    assert len(Counter(choices)) == 3


def test_experiments_of_others_stay_theirs_while_their_managers_live() -> None:
    takeovers = TakeoverSchedule("me")

    assert takeovers.due(held("exp1"), 0.0) == []
    assert takeovers.due(held("exp1"), 100.0) == []


def test_an_experiment_without_owner_is_returned_once_to_its_first_choice() -> None:
    takeovers = TakeoverSchedule("me")
    takeovers.due(held("exp1"), 0.0)

    assert takeovers.due({}, 5.0) == ["exp1"], "no other manager is live"
    assert takeovers.due({}, 50.0) == []


def test_others_wait_for_their_turn() -> None:
    name = next(n for n in (f"e{i}" for i in range(99)) if first_choice(n, ["me", "b"]) == "b")
    takeovers = TakeoverSchedule("me")
    takeovers.due(held(name, by="dead"), 0.0)

    assert takeovers.due(held(by="b"), 1.0) == []
    assert takeovers.due(held(by="b"), 1.0 + TURN_S / 2) == []
    assert takeovers.due(held(by="b"), 2.0) == [name]


def test_an_experiment_that_is_taken_in_time_is_not_returned() -> None:
    name = next(n for n in (f"e{i}" for i in range(99)) if first_choice(n, ["me", "b"]) == "b")
    takeovers = TakeoverSchedule("me")
    takeovers.due(held(name, by="dead"), 0.0)
    takeovers.due(held(by="b"), 1.0)

    assert takeovers.due(held(name, by="b"), 1.5) == []
    assert takeovers.due(held(name, by="b"), 9.0) == []


def test_experiment_that_was_noted_or_taken_here_is_no_longer_vacant() -> None:
    takeovers = TakeoverSchedule("me")
    takeovers.add("noted", 0.0)
    takeovers.add("taken", 0.0)
    takeovers.drop("taken")

    assert takeovers.due({}, 0.0) == ["noted"]


def test_only_presence_leases_name_live_managers() -> None:
    assert living_managers(held("exp1", by="b") | {"x": Lease("x", "dead", 1)}) == {"b"}


def test_experiment_of_another_manager_that_was_taken_here_is_not_vacant_later() -> None:
    takeovers = TakeoverSchedule("me")
    takeovers.due(held("exp1"), 0.0)

    takeovers.drop("exp1")

    assert takeovers.due({}, 5.0) == []


def test_earlier_start_of_an_ownerless_time_is_kept() -> None:
    name = next(n for n in (f"e{i}" for i in range(99)) if first_choice(n, ["me", "b"]) == "b")
    takeovers = TakeoverSchedule("me")
    takeovers.add(name, 0.0)
    takeovers.add(name, TURN_S)

    assert takeovers.due(held(by="b"), TURN_S) == [name]


def test_manager_is_live_by_its_presence_lease() -> None:
    name = ManagerId("b").presence_name

    assert living_managers({name: Lease(name, "b", 1)}) == {"b"}
