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
    """Give leases of a manager, and that it lives."""
    owner = str(ManagerId(by, "h:1", "h:2"))
    return {name: Lease(name, owner, 1) for name in (*names, f"manager/{by}")}


def test_manager_is_read_back_from_the_owner_of_a_lease() -> None:
    manager = ManagerId("boot1", "host:7501", "host:8080")

    assert ManagerId.of(str(manager)) == manager
    assert ManagerId.of(str(ManagerId("alone"))) == ManagerId("alone")
    assert ManagerId.of("somebody else's word") == ManagerId("somebody", "else's", "word")


def test_all_managers_agree_who_comes_first_and_experiments_spread() -> None:
    managers = ["a", "b", "c"]
    experiments = [f"exp{number:05d}" for number in range(300)]

    choices = [first_choice(name, managers) for name in experiments]

    assert choices == [first_choice(name, managers[::-1]) for name in experiments]
    # 300 fair choices of 3: a share is 100 with a deviation of 8; 50 is 6 of them away.
    assert min(Counter(choices).values()) > 50
    assert len(Counter(choices)) == 3


def test_experiments_of_others_stay_theirs_while_their_managers_live() -> None:
    vacancies = TakeoverSchedule("me")

    assert vacancies.due(held("exp1"), 0.0) == []
    assert vacancies.due(held("exp1"), 100.0) == []


def test_experiment_that_loses_its_owner_is_told_once_to_the_one_whose_turn_it_is() -> None:
    vacancies = TakeoverSchedule("me")
    vacancies.due(held("exp1"), 0.0)

    assert vacancies.due({}, 5.0) == ["exp1"], "nobody else lives"
    assert vacancies.due({}, 50.0) == []


def test_others_wait_for_their_turn() -> None:
    name = next(n for n in (f"e{i}" for i in range(99)) if first_choice(n, ["me", "b"]) == "b")
    vacancies = TakeoverSchedule("me")
    vacancies.due(held(name, by="dead"), 0.0)

    assert vacancies.due(held(by="b"), 1.0) == []
    assert vacancies.due(held(by="b"), 1.0 + TURN_S / 2) == []
    assert vacancies.due(held(by="b"), 1.0 + TURN_S) == [name]


def test_experiment_that_is_taken_in_time_is_told_to_nobody() -> None:
    name = next(n for n in (f"e{i}" for i in range(99)) if first_choice(n, ["me", "b"]) == "b")
    vacancies = TakeoverSchedule("me")
    vacancies.due(held(name, by="dead"), 0.0)
    vacancies.due(held(by="b"), 1.0)

    assert vacancies.due(held(name, by="b"), 1.5) == []
    assert vacancies.due(held(name, by="b"), 9.0) == []


def test_experiment_that_was_noted_or_taken_here_is_no_longer_vacant() -> None:
    vacancies = TakeoverSchedule("me")
    vacancies.add("noted", 0.0)
    vacancies.add("taken", 0.0)
    vacancies.drop("taken")

    assert vacancies.due({}, 0.0) == ["noted"]


def test_only_leases_of_life_tell_who_lives() -> None:
    assert living_managers(held("exp1", by="b") | {"x": Lease("x", "dead", 1)}) == {"b"}
