"""Which machine gets which agent."""

from svc_trial_runner.fleet.adapters.remote.placement import MachineState, owners, place
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.testing import agent_name, agent_order

ORDERS = [agent_order(agent_name(number)) for number in range(3)]


def places(*machines: MachineState) -> list[int]:
    return [index for index, _ in place(ORDERS, machines).places]


def test_orders_are_spread_in_the_order_of_the_list() -> None:
    assert places(MachineState(1, 0), MachineState(1, 0), MachineState(1, 0)) == [0, 1, 2]


def test_emptiest_machine_comes_first() -> None:
    assert places(MachineState(4, 2), MachineState(4, 0)) == [1, 1, 0]


def test_machine_gets_no_more_than_its_limit() -> None:
    placement = place(ORDERS, [MachineState(2, 1), MachineState(1, 0)])

    assert [index for index, _ in placement.places] == [1, 0]
    assert [failure.name for failure in placement.failures] == [agent_name(2)]
    assert "all 2 machines" in placement.failures[0].reason


def test_machine_with_an_error_gets_none_and_is_the_reason() -> None:
    broken = MachineState(1, 0, "b: does not answer", "switch it on")
    placement = place(ORDERS[:2], [broken, MachineState(1, 0)])

    assert [index for index, _ in placement.places] == [1]
    failure = placement.failures[0]
    assert (failure.reason, failure.remedy) == ("b: does not answer", "switch it on")
    assert not failure.permanent


def test_failure_is_permanent_if_no_machine_can_ever_serve() -> None:
    broken = MachineState(1, 0, "wrong password", "correct it", permanent=True)

    assert place(ORDERS[:1], [broken, broken]).failures[0].permanent
    assert not place(ORDERS, [broken, MachineState(1, 1)]).failures[0].permanent


def test_agent_belongs_to_the_machine_of_the_record() -> None:
    found: dict[AgentName, list[int]] = {agent_name(1): [0, 1], agent_name(2): [0, 1]}

    assert owners(found, {agent_name(1): 1, agent_name(2): 5}) == {
        agent_name(1): 1,
        agent_name(2): 0,
    }


def test_machine_without_a_limit_gets_all() -> None:
    assert places(MachineState(None, 0), MachineState(1, 1)) == [0, 0, 0]


def test_first_three_errors_are_the_reason() -> None:
    broken = [MachineState(1, 0, f"e{number}", f"r{number}") for number in range(4)]

    (failure,) = place(ORDERS[:1], broken).failures

    assert (failure.reason, failure.remedy) == ("e0; e1; e2", "r0")


def test_failure_is_not_permanent_if_one_error_may_go_away() -> None:
    states = [MachineState(1, 0, "a", permanent=True), MachineState(1, 0, "b")]

    assert not place(ORDERS[:1], states).failures[0].permanent
