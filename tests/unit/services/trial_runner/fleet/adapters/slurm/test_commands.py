"""Slurm's commands, called and refused."""

from collections.abc import Iterable, Sequence

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult
from svc_trial_runner.fleet.adapters.slurm.commands import SlurmCommands, SlurmRefusalError
from svc_trial_runner.fleet.adapters.slurm.options import SlurmOptions
from svc_trial_runner.fleet.ports import PlatformError


class OneAnswer:
    """Runner that gives the same result to every command."""

    is_here = True

    def __init__(self, output: str = "", errors: str = "", status: int = 0) -> None:
        self.result = CommandResult(output.encode(), errors.encode(), status)
        self.arguments: list[str] = []
        self.content = b""

    async def run(
        self, arguments: Sequence[str], *, content: Iterable[bytes] = (), limit_s: float
    ) -> CommandResult:
        self.arguments, self.content = list(arguments), b"".join(content)
        return self.result

    async def connect(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


def commands(runner: OneAnswer, options: SlurmOptions | None = None) -> SlurmCommands:
    return SlurmCommands(runner, options or SlurmOptions())


async def test_script_is_read_from_the_standard_input() -> None:
    runner = OneAnswer("12\n")

    await commands(runner).submit("#!/bin/bash\n", "/home/ann/.nni")

    assert runner.arguments == ["sbatch", "--parsable", "--chdir=/home/ann/.nni"]
    assert runner.content == b"#!/bin/bash\n"


async def test_folder_and_configuration_of_slurm_are_used() -> None:
    runner = OneAnswer()

    options = SlurmOptions(commands_folder="/opt/slurm/bin", slurm_conf="/etc/a b")
    await commands(runner, options).queue()

    assert runner.arguments[:3] == ["env", "SLURM_CONF=/etc/a b", "/opt/slurm/bin/squeue"]


async def test_refusal_has_the_words_the_field_and_the_remedy() -> None:
    runner = OneAnswer("", "sbatch: error: invalid partition specified: nope\n", 1)

    with pytest.raises(SlurmRefusalError, match="invalid partition specified: nope") as caught:
        await commands(runner).submit("", "/")

    assert (caught.value.field, caught.value.permanent) == ("partition", True)
    assert caught.value.remedy


async def test_test_of_a_script_returns_the_refusal() -> None:
    runner = OneAnswer("", "allocation failure: Invalid qos specification\n", 1)

    refused = await commands(runner).test("")

    assert refused is not None
    assert refused.field == "qos"
    assert "--test-only" in runner.arguments


async def test_output_that_was_cut_is_an_error() -> None:
    with pytest.raises(PlatformError, match="was cut"):
        await commands(OneAnswer("12|nni-0123abcd-exp-a-7|RUNN")).queue()


async def test_cancelling_an_ended_job_is_no_error() -> None:
    runner = OneAnswer(
        "", "scancel: error: Kill job error on job id 9: Invalid job id specified", 1
    )

    await commands(runner).cancel(["9"])

    assert runner.arguments == ["scancel", "9"]


async def test_nothing_is_called_to_cancel_nothing() -> None:
    runner = OneAnswer()

    await commands(runner).cancel([])

    assert runner.arguments == []


async def test_cancelling_with_the_controller_down_is_an_error() -> None:
    runner = OneAnswer("", "scancel: error: Unable to contact slurm controller", 1)

    with pytest.raises(SlurmRefusalError) as caught:
        await commands(runner).cancel(["9"])

    assert caught.value.is_unreachable


async def test_forgotten_job_has_no_details() -> None:
    assert await commands(OneAnswer("", "Invalid job id specified", 1)).details("9") == []


async def test_command_that_fails_without_words_names_its_status() -> None:
    with pytest.raises(SlurmRefusalError, match="squeue ended with 3"):
        await commands(OneAnswer(status=3)).queue()


async def test_words_of_the_output_are_shown_if_there_are_no_errors() -> None:
    with pytest.raises(SlurmRefusalError, match="it is full"):
        await commands(OneAnswer("it is full\n", " ", status=1)).submit("", "/")


async def test_script_that_slurm_takes_has_no_refusal() -> None:
    runner = OneAnswer()

    assert await commands(runner).test("") is None
    assert commands(runner).are_here is True


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("queue", ["squeue", "--noheader", "--array", "--me", "--states=all",
                   "--format=%i|%j|%T|%N|%r"]),
        ("jobs_of_accounting", ["sacct", "--noheader", "--parsable2", "--allocations",
                                "--starttime=now-7days",
                                "--format=JobID,JobName,State,ExitCode,NodeList"]),
        ("partitions", ["scontrol", "show", "partition", "--oneliner"]),
        ("nodes", ["scontrol", "show", "node", "--oneliner"]),
        ("configuration", ["scontrol", "show", "config"]),
    ],
)  # fmt: skip
async def test_command_is_called_with_its_arguments(method: str, arguments: list[str]) -> None:
    runner = OneAnswer("")

    assert not await getattr(commands(runner), method)()

    assert runner.arguments == arguments


async def test_output_of_a_command_is_parsed() -> None:
    job = "nni-0123abcd-exp-a-7"

    (queued,) = await commands(OneAnswer(f"12|{job}|RUNNING|n1|None\n")).queue()
    (known,) = await commands(OneAnswer(f"12|{job}|FAILED|1:0|n1\n")).jobs_of_accounting()
    runner = OneAnswer(f"JobId=12 JobName={job} JobState=COMPLETED\n")
    (shown,) = await commands(runner).details("12")
    (partition,) = await commands(OneAnswer("PartitionName=a\n")).partitions()
    (node,) = await commands(OneAnswer("NodeName=b\n")).nodes()

    assert [one.state for one in (queued, known, shown)] == ["RUNNING", "FAILED", "COMPLETED"]
    assert runner.arguments == ["scontrol", "show", "job", "--oneliner", "12"]
    assert (partition.name, node.name) == ("a", "b")
    assert await commands(OneAnswer("A = b\n")).configuration() == "A = b\n"


async def test_missing_commands_are_looked_for_in_their_folder() -> None:
    runner = OneAnswer("/opt/squeue\n/opt/scontrol\n")

    missing = await commands(runner, SlurmOptions(commands_folder="/opt")).missing_programs()

    assert missing == ["/opt/squeue", "/opt/scontrol"]
    assert runner.arguments[-4:] == ["/opt/sbatch", "/opt/squeue", "/opt/scancel", "/opt/scontrol"]


@pytest.mark.parametrize(
    "words", ["Invalid job id 9", "Job/step already completing or completed", "Already completed"]
)
async def test_job_that_has_ended_needs_no_cancellation(words: str) -> None:
    runner = OneAnswer("", f"scancel: error: {words}", 1)

    await commands(runner).cancel(["9", "10"])

    assert runner.arguments == ["scancel", "9", "10"]


async def test_words_of_a_command_are_those_of_its_errors() -> None:
    with pytest.raises(SlurmRefusalError) as caught:
        await commands(OneAnswer("output", "errors", status=1)).configuration()

    assert caught.value.message == "errors"
