"""Options of the section."""

import math

import pytest

from svc_trial_runner.fleet.adapters.slurm.options import (
    FIELDS,
    SlurmOptions,
    option_problems,
    parse_options,
)


def broken(**options: object) -> list[str]:
    return [problem.field for problem in option_problems(options)]


def test_names_of_a_section_are_camel_case() -> None:
    assert {"timeLimit", "setupLines", "maxTrialDuration", "pollIntervalSeconds"} <= set(FIELDS)


def test_options_are_read() -> None:
    options = parse_options(
        {"partition": "gpu", "timeLimit": 90, "cpus": 4, "setupLines": ["module load cuda"]}
    )

    assert options == SlurmOptions(
        partition="gpu", time_limit="90", cpus=4, setup_lines=("module load cuda",)
    )
    assert options.time_limit_s == 5400


def test_agents_are_arrays_and_reused_unless_the_section_refuses() -> None:
    options = parse_options({})
    refused = parse_options({"arrays": False, "reuseMode": False})

    assert (options.arrays, options.reuse_mode) == (True, True)
    assert (refused.arrays, refused.reuse_mode) == (False, False)


def test_lines_of_one_text_are_a_list() -> None:
    assert parse_options({"setupLines": "a\nb"}).setup_lines == ("a", "b")


def test_fields_of_all_platforms_are_passed_over() -> None:
    assert option_problems({"trialGpuNumber": 1, "partition": "gpu"}) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partition", ["a"]),
        ("cpus", 0),
        ("cpus", 1.5),
        ("cpus", True),
        ("arrays", "yes"),
        ("options", [1]),
        ("pollIntervalSeconds", 0),
    ],
)
def test_value_of_a_wrong_type_is_named(name: str, value: object) -> None:
    assert broken(**{name: value}) == [name]
    assert parse_options({name: value}) == SlurmOptions()


@pytest.mark.parametrize("name", ["timeLimit", "maxTrialDuration"])
def test_time_that_is_none_is_named(name: str) -> None:
    assert broken(**{name: "soon"}) == [name]


def test_limit_in_which_no_trial_would_fit_is_refused() -> None:
    assert broken(timeLimit="1h", maxTrialDuration="1h") == ["timeLimit"]


def test_grace_must_be_shorter_than_the_limit() -> None:
    assert broken(timeLimit="1m") == ["graceSeconds"]


@pytest.mark.parametrize("raw", ["--nodes=2", "-N 2", "-N4", "--ntasks=8", "-n 2"])
def test_trials_over_several_nodes_are_refused(raw: str) -> None:
    (problem,) = option_problems({"options": [raw]})

    assert problem.field == "options[0]"
    assert "several nodes are not supported" in problem.rule


def test_several_nodes_of_the_section_are_refused() -> None:
    assert broken(nodes=2) == ["nodes"]


@pytest.mark.parametrize("raw", ["--nodes=1", "-N 1", "--constraint=a100", "--exclusive", "-x n1"])
def test_raw_options_are_accepted(raw: str) -> None:
    assert broken(options=[raw]) == []


@pytest.mark.parametrize("raw", ["--job-name=mine", "-J mine", "--array=1-9", "--time=5"])
def test_raw_option_that_has_a_field_or_is_ours_is_refused(raw: str) -> None:
    (problem,) = option_problems({"options": [raw]})

    assert problem.field == "options[0]"
    assert problem.remedy


@pytest.mark.parametrize("raw", ["train.sh", "", "--wrap", "--foo\nrm -rf ~"])
def test_text_that_is_no_option_is_refused(raw: str) -> None:
    assert "options[0]" in broken(options=[raw])


def test_line_break_in_a_comment_is_refused() -> None:
    assert broken(comment="a\n#SBATCH --uid=0") == ["comment"]


def test_image_needs_the_version_of_its_python() -> None:
    assert broken(image="/images/a.sif") == ["pythonVersion"]
    assert broken(image="/images/a.sif", pythonVersion="3.12") == []


def test_runtime_of_images_is_apptainer_or_pyxis() -> None:
    assert broken(imageRuntime="docker") == ["imageRuntime"]


def test_folders_are_absolute_or_below_the_home() -> None:
    assert broken(home="nni", logFolder="./logs") == ["home", "logFolder"]
    assert broken(home="~/nni", logFolder="/scratch/logs") == []


def test_size_of_memory_is_checked() -> None:
    assert broken(memory="much") == ["memory"]


@pytest.mark.parametrize(
    "options",
    [
        {"pollIntervalSeconds": 0.1},
        {"cpus": 1},
        {"cpus": 2.0},
        {"nodes": 1},
        {"timeLimit": "1h", "maxTrialDuration": "59m"},
        {"timeLimit": "2m", "graceSeconds": 119},
        {"home": "/nni", "logFolder": "~/logs"},
        {"imageRuntime": "pyxis"},
        {"partition": 7},
    ],
)
def test_value_at_a_limit_has_no_problem(options: dict[str, object]) -> None:
    assert option_problems(options) == []


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"pollIntervalSeconds": 0.09}, "pollIntervalSeconds"),
        ({"pollIntervalSeconds": True}, "pollIntervalSeconds"),
        ({"partition": True}, "partition"),
        ({"timeLimit": "1h", "maxTrialDuration": "3541s"}, "timeLimit"),
        ({"timeLimit": "2m", "graceSeconds": 120}, "graceSeconds"),
        ({"setupLines": ["a\nb"]}, "setupLines[0]"),
    ],
)
def test_value_beyond_a_limit_is_named(options: dict[str, object], field: str) -> None:
    assert broken(**options) == [field]


@pytest.mark.parametrize(
    ("options", "value"),
    [({"cpus": "a" * 100}, f"'{'a' * 79}"), ({"comment": "\n" + "a" * 100}, f"'\\n{'a' * 77}")],
)
def test_long_value_is_shown_by_its_first_80_characters(
    options: dict[str, object], value: str
) -> None:
    (problem,) = option_problems(options)

    assert problem.value == value


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, math.nan, 10**400], ids=["inf", "-inf", "nan", "huge"]
)
@pytest.mark.parametrize(
    "name", ["cpus", "nodes", "graceSeconds", "pollIntervalSeconds", "reuseMode", "options"]
)
def test_number_that_is_not_finite_is_named(name: str, value: float) -> None:
    assert broken(**{name: value}) == [name]
    assert parse_options({name: value}) == SlurmOptions()


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("partition", "must be text"),
        ("cpus", "must be a whole number of at least 1"),
        ("pollIntervalSeconds", "must be a number of at least 0.1"),
        ("arrays", "must be true or false"),
        ("setupLines", "must be a list of texts"),
    ],
)
def test_value_of_a_wrong_type_is_shown_with_the_rule_of_its_field(name: str, rule: str) -> None:
    (problem,) = option_problems({name: {}})

    assert (problem.field, problem.rule, problem.value) == (name, rule, "{}")


@pytest.mark.parametrize("value", [0, 0.5, 1.5])
def test_count_that_is_no_whole_number_of_at_least_one_is_named(value: float) -> None:
    assert broken(graceSeconds=value) == ["graceSeconds"]


def test_job_ends_60_seconds_after_its_notice_and_the_queue_is_read_each_5_seconds() -> None:
    options = parse_options({})

    assert (options.grace_seconds, options.poll_interval_seconds) == (60, 5.0)
    assert (options.nodes, options.cpus, options.image_runtime) == (1, None, "apptainer")
    assert options.time_limit_s is None


def test_notice_must_not_fill_the_time_limit_by_itself() -> None:
    (problem,) = option_problems({"timeLimit": "2m", "graceSeconds": 121})

    assert problem.rule == "must be shorter than timeLimit"
    assert problem.value == "121"


def test_time_limit_that_is_too_short_for_a_trial_is_shown() -> None:
    (problem,) = option_problems({"timeLimit": "2m", "maxTrialDuration": "61s"})

    assert (problem.field, problem.value) == ("timeLimit", "2m")
    assert problem.remedy == "no trial would ever fit"


@pytest.mark.parametrize(
    ("raw", "name"),
    [("-o log", "output"), ("-e log", "error"), ("-D /x", "chdir"), ("-p gpu", "partition"),
     ("-A lab", "account"), ("-q high", "qos"), ("-t 5", "time"), ("-a 1-9", "array"),
     ("--export=ALL", "export"), ("--requeue", "requeue")],
)  # fmt: skip
def test_refused_raw_option_is_named_by_its_long_name(raw: str, name: str) -> None:
    (problem,) = option_problems({"options": ["--exclusive", raw]})

    assert (problem.field, problem.rule, problem.value) == (
        "options[1]",
        f"must not be --{name}",
        raw,
    )


@pytest.mark.parametrize("raw", ["--nodes=1-1", "-N1", "-n1", "--ntasks-per-node=1"])
def test_raw_option_of_one_node_is_accepted(raw: str) -> None:
    assert broken(options=[raw]) == []


@pytest.mark.parametrize("raw", ["--nodes=11", "--ntasks-per-node=2", "--nodes=1-2", "-N11"])
def test_raw_option_of_several_nodes_is_shown(raw: str) -> None:
    (problem,) = option_problems({"options": [raw]})

    assert (problem.field, problem.value) == ("options[0]", raw)


@pytest.mark.parametrize("version", ["3.10", "3.1", "2.11", "3.11.x", "13.11", ""])
def test_version_of_python_in_an_image_is_3_11_or_later(version: str) -> None:
    assert broken(image="/images/a.sif", pythonVersion=version) == ["pythonVersion"]


@pytest.mark.parametrize("version", ["3.11", "3.19.2", "3.20"])
def test_later_versions_of_python_in_an_image_are_accepted(version: str) -> None:
    assert broken(image="/images/a.sif", pythonVersion=version) == []
