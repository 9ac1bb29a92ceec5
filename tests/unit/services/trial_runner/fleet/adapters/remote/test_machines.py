"""Machines of a `remote` section."""

import math
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.remote.machines import (
    HostKeyPolicy,
    Machine,
    parse_login,
    parse_machines,
)
from svc_trial_runner.fleet.domain.agents import PlatformProblem, PlatformSection

ONE = {"host": "a", "user": "u"}


def section(*entries: object, **secrets: str) -> PlatformSection:
    return PlatformSection("remote", {"machineList": list(entries)}, secrets)


def problems_of(*entries: object) -> list[PlatformProblem]:
    return parse_machines(section(*entries))[1]


def test_short_entry_has_the_usual_values() -> None:
    machines, problems = parse_machines(section(ONE))

    assert problems == []
    assert machines == [Machine(0, "a", "u")]
    assert machines[0].address == "u@a:22"
    assert machines[0].host_key_policy is HostKeyPolicy.STRICT


def test_full_entry_has_all_values() -> None:
    entry = ONE | {
        "port": 2222.0,
        "sshKeyFile": "/k",
        "hostKeyPolicy": "accept-new",
        "slots": 4,
        "setupLines": ["module load cuda"],
        "pythonPath": "/opt/py/bin",
        "folder": "/scratch/nni",
        "gpuIndices": "0, 2",
        "useActiveGpu": True,
        "maxTrialNumberPerGpu": 2,
    }

    machines, problems = parse_machines(section(entry))

    assert problems == []
    assert machines == [
        Machine(
            0,
            "a",
            "u",
            2222,
            key_file=Path("/k"),
            host_key_policy=HostKeyPolicy.ACCEPT_NEW,
            slots=4,
            setup_lines=("module load cuda",),
            python_path="/opt/py/bin",
            folder="/scratch/nni",
            gpu_indices=(0, 2),
            use_active_gpu=True,
            trials_per_gpu=2,
        )
    ]


def test_secrets_are_found_by_their_path() -> None:
    given = PlatformSection(
        "remote",
        {"machineList": [ONE, {"host": "b", "user": "u"}]},
        {"machineList[1].password": "first-secret", "machineList[1].sshPassphrase": "two"},
    )

    machines, _ = parse_machines(given)

    assert [machine.password for machine in machines] == [None, "first-secret"]
    assert machines[1].passphrase == "two"
    assert "first-secret" not in repr(machines)


@pytest.mark.parametrize("options", [{}, {"machineList": []}, {"machineList": "a"}])
def test_section_without_machines_is_refused(options: dict[str, object]) -> None:
    assert [one.field for one in parse_machines(PlatformSection("remote", options))[1]] == [
        "machineList"
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host", ""),
        ("host", "a b"),
        ("host", "-oProxyCommand=x"),
        ("user", None),
        ("port", 0),
        ("port", 65536),
        ("port", "ssh"),
        ("port", True),
        ("slots", 1.5),
        ("hostKeyPolicy", "no"),
        ("setupLines", [1]),
        ("folder", "nni"),
        ("gpuIndices", "a"),
        ("gpuIndices", [-1]),
        ("useActiveGpu", "yes"),
        ("pythonPath", "C:\\py;C:\\py\\Scripts"),
    ],
)
def test_wrong_value_is_a_problem_of_its_field(name: str, value: object) -> None:
    assert [one.field for one in problems_of(ONE, {**ONE, "host": "b", name: value})] == [
        f"machineList[1].{name}"
    ]


def test_entry_that_is_no_map_is_a_problem() -> None:
    assert [one.field for one in problems_of("a")] == ["machineList[0]"]


def test_machine_that_is_named_twice_is_a_problem() -> None:
    problem = problems_of(ONE, ONE)[0]

    assert (problem.field, problem.value) == ("machineList[1].host", "u@a:22")
    assert "slots" in problem.remedy


def test_one_machine_may_have_two_users() -> None:
    assert problems_of(ONE, {"host": "a", "user": "v"}) == []


@pytest.mark.parametrize("value", [3, 3.0, "3", [3], [3.0]])
def test_one_gpu_may_be_written_in_any_form(value: object) -> None:
    assert parse_machines(section({**ONE, "gpuIndices": value}))[0][0].gpu_indices == (3,)


def test_section_without_a_host_has_no_login_node() -> None:
    assert parse_login(PlatformSection("slurm", {"port": 22})) == (None, [])


def test_login_node_has_the_fields_of_its_section_and_nothing_else() -> None:
    options = {"host": "login1", "user": "ann", "port": 2222.0, "slots": 4, "setupLines": ["x"]}

    machine, problems = parse_login(PlatformSection("slurm", options, {"password": "secret"}))

    assert problems == []
    assert machine == Machine(None, "login1", "ann", 2222, password="secret")
    assert machine.field("host") == "host"


def test_login_node_without_a_user_is_a_problem_of_that_field() -> None:
    machine, (problem,) = parse_login(PlatformSection("slurm", {"host": "login1"}))

    assert machine is None
    assert (problem.field, problem.rule) == ("user", "must be given")


def test_long_value_is_shown_by_its_first_100_characters() -> None:
    (problem,) = problems_of({**ONE, "port": "a" * 200})

    assert problem.value == "a" * 100


@pytest.mark.parametrize("port", [1, 65_535])
def test_port_may_be_the_first_or_the_last_one(port: int) -> None:
    (machine,), problems = parse_machines(section({**ONE, "port": port}))

    assert (machine.port, problems) == (port, [])


@pytest.mark.parametrize(
    ("name", "value"),
    [("host", "a@b"), ("host", "a/b"), ("user", "a\0b"), ("user", 7), ("port", 22.5),
     ("setupLines", 7), ("gpuIndices", []), ("slots", 0), ("maxTrialNumberPerGpu", True)],
)  # fmt: skip
def test_value_that_names_no_machine_is_a_problem(name: str, value: object) -> None:
    (problem,) = problems_of({**ONE, name: value})

    assert problem.field == f"machineList[0].{name}"


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("setupLines", "a\nb", ("a", "b")),
        ("useActiveGpu", False, False),
        ("slots", 1, 1),
        ("folder", "~/nni", "~/nni"),
        ("pythonPath", "", ""),
    ],
)
def test_value_of_an_entry_is_read(name: str, value: object, found: object) -> None:
    fields = {"setupLines": "setup_lines", "useActiveGpu": "use_active_gpu"}
    fields["pythonPath"] = "python_path"

    (machine,), problems = parse_machines(section({**ONE, name: value}))

    assert problems == []
    assert getattr(machine, fields.get(name, name)) == found


def test_password_of_the_options_is_taken_unless_the_secrets_have_one() -> None:
    entry = {**ONE, "password": "shown"}
    options = {"machineList": [entry]}

    (without,), _ = parse_machines(section(entry))
    (hidden,), _ = parse_machines(
        PlatformSection("remote", options, {"machineList[0].password": "hidden"})
    )

    assert (without.password, hidden.password) == ("shown", "hidden")


def test_machine_after_a_broken_entry_is_read() -> None:
    machines, problems = parse_machines(section("a", {"host": "b"}, ONE))

    assert machines == [Machine(2, "a", "u")]
    assert len(problems) == 2


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("port", 65_536, "must be <= 65535"),
        ("port", 0, "must be a whole number >= 1"),
        ("port", math.inf, "must be a whole number >= 1"),
        ("slots", math.nan, "must be a whole number >= 1"),
        ("hostKeyPolicy", "no", "must be strict or accept-new"),
        ("host", "a\tb", "must be a host name or an IP address"),
        ("host", "a\nb", "must be a host name or an IP address"),
        ("user", "", "must be given"),
        ("user", ["a"], "must be text"),
        ("folder", "~ann/nni", "must be an absolute path or begin with ~/"),
        ("useActiveGpu", 1, "must be true or false"),
        ("gpuIndices", "0,,1", "must be numbers of GPUs, separated by commas"),
        ("setupLines", ["a", 1], "must be a list of lines of the shell"),
    ],
)
def test_broken_rule_is_named(name: str, value: object, rule: str) -> None:
    (problem,) = problems_of({**ONE, name: value})

    assert (problem.field, problem.rule) == (f"machineList[0].{name}", rule)


def test_each_broken_rule_of_an_entry_is_a_problem() -> None:
    problems = problems_of({"host": "", "port": 0, "slots": 0})

    assert [problem.field.partition(".")[2] for problem in problems] == [
        "host", "user", "port", "slots"
    ]  # fmt: skip


def test_section_without_machines_has_a_remedy() -> None:
    (problem,) = parse_machines(PlatformSection("remote", {"machineList": 7}))[1]

    assert problem.rule == "must name at least one machine"
    assert problem.remedy == "add host and user of each"


def test_file_of_a_key_may_be_below_the_home() -> None:
    (machine,), _ = parse_machines(section({**ONE, "sshKeyFile": "~/.ssh/id"}))

    assert machine.key_file == Path.home() / ".ssh" / "id"


def test_empty_secrets_are_none_of_the_options() -> None:
    (machine,), _ = parse_machines(section({**ONE, "password": "", "sshPassphrase": "p"}))

    assert (machine.password, machine.passphrase) == (None, "p")


@pytest.mark.parametrize(("given", "flag"), [(False, False), (True, True), (None, None)])
def test_rule_of_active_gpus_is_that_of_the_experiment_unless_it_is_given(
    given: object, *, flag: bool | None
) -> None:
    (machine,), _ = parse_machines(section({**ONE, "useActiveGpu": given}))

    assert machine.use_active_gpu is flag


def test_third_entry_of_a_machine_differs_from_the_first_one_too() -> None:
    problems = problems_of(ONE, {"host": "b", "user": "u"}, ONE, ONE)

    assert [(one.field, one.rule) for one in problems] == [
        ("machineList[2].host", "must differ from machineList[0].host"),
        ("machineList[3].host", "must differ from machineList[0].host"),
    ]


def test_login_node_with_a_broken_field_is_none() -> None:
    machine, problems = parse_login(
        PlatformSection("slurm", {"host": "login1", "user": "ann", "port": 0})
    )

    assert machine is None
    assert [problem.field for problem in problems] == ["port"]
