"""Requirements, markers and tags of wheels, for a worker's interpreter."""

import pytest

from svc_trial_runner.fleet.domain.distributions import (
    Requirement,
    WorkerTarget,
    is_needed,
    normalized,
    parse_requirement,
    parse_wheel_name,
    runs_on,
)

TARGET = WorkerTarget((3, 11), "manylinux_2_28_x86_64")
MUSL = WorkerTarget((3, 12), "musllinux_1_2_aarch64")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("grpcio", Requirement("grpcio", frozenset(), "", "")),
        ("grpcio>=1.80,<2", Requirement("grpcio", frozenset(), ">=1.80,<2", "")),
        ("Typing_Extensions (>=4)", Requirement("typing-extensions", frozenset(), ">=4", "")),
        (
            'nni-svc-common[otel, s3]==4 ; extra == "server"',
            Requirement("nni-svc-common", frozenset({"otel", "s3"}), "==4", 'extra == "server"'),
        ),
    ],
)
def test_requirement_has_name_extras_rule_and_marker(text: str, expected: Requirement) -> None:
    assert parse_requirement(text) == expected


def test_requirement_by_address_is_not_understood() -> None:
    assert parse_requirement("nni @ https://example.org/nni.whl") is None


@pytest.mark.parametrize(
    ("marker", "needed"),
    [
        ('python_version < "3.13"', True),
        ('python_version < "3.9"', False),
        ('python_version <= "3.11"', True),
        ('python_version >= "3.12"', False),
        ('python_version > "3.11"', False),
        ('"3.10" < python_version', True),
        ('python_full_version == "3.11"', True),
        ('python_version != "3.11"', False),
        ('sys_platform == "win32"', False),
        ('sys_platform != "win32" and platform_machine == "x86_64"', True),
        ('sys_platform == "win32" or os_name == "posix"', True),
        ('platform_machine in "x86_64 aarch64"', True),
        ('platform_machine not in "x86_64 aarch64"', False),
        ('(python_version < "3" or extra == "fast") and os_name == "posix"', True),
        ('extra == "slow"', False),
        ('python_version ~= "3.8"', True),
        ('python_version < "3.11"', False),
        ('python_version >= "3.11"', True),
        ("python_version <", True),  # not understood: it is taken
        ('"3" < python_version < "3.2"', True),  # likewise
    ],
)
def test_marker_is_evaluated_for_the_worker(marker: str, *, needed: bool) -> None:
    requirement = Requirement("other", frozenset(), "", marker)

    assert is_needed(requirement, TARGET, frozenset({"fast"})) is needed


@pytest.mark.parametrize(
    ("tag", "fits"),
    [
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("py2-none-any", False),
        ("py311-none-any", True),
        ("py312-none-any", False),
        ("cp311-cp311-manylinux_2_17_x86_64", True),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ("cp311-cp311-manylinux2014_x86_64", True),
        ("cp311-cp311-manylinux1_x86_64", True),
        ("cp311-cp311-manylinux_2_28_x86_64", True),
        ("cp311-cp311-manylinux_2_31_x86_64", False),
        ("cp311-cp311-manylinux_2_17_aarch64", False),
        ("cp311-cp311-musllinux_1_1_x86_64", False),
        ("cp312-cp312-manylinux_2_17_x86_64", False),
        ("cp311-cp311t-manylinux_2_17_x86_64", False),
        ("cp310-abi3-manylinux_2_17_x86_64", True),
        ("cp311-abi3-manylinux_2_17_x86_64", True),
        ("cp312-abi3-manylinux_2_17_x86_64", False),
        ("cp311-none-any", True),
        ("cp310-none-any", False),
        ("cp39.cp310-abi3-manylinux_2_17_x86_64", True),
        ("py3-none-manylinux_2_17_x86_64", True),
        ("cp311-cp311-linux_x86_64", False),
        ("cp311-cp311-win_amd64", False),
        ("pp311-pypy311_pp73-manylinux_2_17_x86_64", False),
    ],
)
def test_wheel_runs_where_its_tags_fit(tag: str, *, fits: bool) -> None:
    assert runs_on(tag, TARGET) is fits


def test_wheel_that_was_built_here_runs_on_the_same_c_library_or_a_newer_one() -> None:
    tag = "cp311-cp311-linux_x86_64"

    assert runs_on(tag, TARGET, WorkerTarget((3, 11), "manylinux_2_27_x86_64"))
    assert not runs_on(tag, TARGET, WorkerTarget((3, 11), "manylinux_2_31_x86_64"))
    assert not runs_on(tag, TARGET, WorkerTarget((3, 11), "musllinux_1_1_x86_64"))


def test_musl_has_wheels_of_its_own() -> None:
    assert runs_on("cp312-cp312-musllinux_1_1_aarch64", MUSL)
    assert not runs_on("cp312-cp312-manylinux2014_aarch64", MUSL)
    assert MUSL.platform_tags == ["musllinux_1_2_aarch64", "musllinux_1_1_aarch64"]


def test_older_platform_tags_are_named_for_pip() -> None:
    tags = TARGET.platform_tags

    assert tags[0] == "manylinux_2_28_x86_64"
    assert {"manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64"} < {*tags}
    assert "manylinux_2_5_x86_64" in tags
    assert "manylinux_2_4_x86_64" not in tags


def test_unknown_platform_tag_is_taken_as_it_is() -> None:
    target = WorkerTarget((3, 11), "linux_riscv64")

    assert (target.cpu, target.platform_tags) == ("", ["linux_riscv64"])


def test_names_are_compared_as_indexes_do() -> None:
    assert normalized("Typing__Extensions.x") == "typing-extensions-x"


def test_name_of_a_wheel_has_version_and_tag() -> None:
    wheel = parse_wheel_name("grpcio_tools-1.85.1-1-cp311-cp311-manylinux2014_x86_64.whl")

    assert wheel is not None
    assert (wheel.name, wheel.version) == ("grpcio-tools", "1.85.1")
    assert wheel.tag == "cp311-cp311-manylinux2014_x86_64"
    assert parse_wheel_name("grpcio-1.85.1.tar.gz") is None


@pytest.mark.parametrize(
    ("name", "is_wheel"),
    [
        ("grpcio-1.85.1-cp311-cp311-manylinux2014_x86_64.whl", True),
        ("grpcio-cp311-cp311-manylinux2014_x86_64.whl", False),
        ("grpcio-1.85.1-1-2-cp311-cp311-manylinux2014_x86_64.whl", False),
        ("grpcio-1.85.1-cp311-cp311-manylinux2014_x86_64.zip", False),
    ],
)
def test_name_of_a_wheel_has_five_or_six_parts(name: str, *, is_wheel: bool) -> None:
    assert (parse_wheel_name(name) is not None) is is_wheel
