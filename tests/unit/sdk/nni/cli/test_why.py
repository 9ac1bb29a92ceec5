import json

import pytest

from nni.cli.main import DONE, FAILED, main
from nni.cli.why import explanation_record
from nni_proto.trial.v1 import trial_pb2
from nni_proto.trial.v1 import trial_service_pb2 as pb
from tests.support.in_memory_manager import InMemoryManager

FAILURE = pb.ExplainTrialResponse(
    trial_id="aBcDe",
    state=trial_pb2.TRIAL_STATE_FAILED,
    verdict=pb.VERDICT_FAILED,
    summary="the command ended with exit code 1",
    reasons=[pb.Reason(kind=pb.REASON_KIND_AGENT, text="it raised an error", remedy="mend it")],
    lost_attempts=[pb.LostAttempt(attempt=1, reason="the agent was lost\nat noon")],
    stderr_tail="Traceback\nValueError: x",
    exit_code=1,
)


def test_reasons_and_remedies_are_lines(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.add_trial("abcd1234", "aBcDe", state=trial_pb2.TRIAL_STATE_FAILED)
    manager.explanations["aBcDe"] = FAILURE

    assert main(["trial", "why", "aBcDe"]) == DONE

    assert capsys.readouterr().out.splitlines() == [
        "The command ended with exit code 1.",
        "  why: it raised an error",
        "  do:  mend it",
        "  attempt 1 on no agent: the agent was lost",
        "stderr ended with:",
        "  Traceback",
        "  ValueError: x",
    ]


def test_without_a_trial_the_next_one_is_explained(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.explanations[""] = pb.ExplainTrialResponse(
        verdict=pb.VERDICT_NOT_CREATED, summary="no slot is free"
    )

    assert main(["trial", "why", "--json"]) == DONE

    record = json.loads(capsys.readouterr().out)
    assert (record["trialJobId"], record["status"]) == (None, None)
    assert (record["verdict"], record["exitCode"]) == ("NOT_CREATED", None)


def test_trial_of_any_experiment_is_found(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.add_trial("abcd1234", "aBcDe")
    manager.add_experiment("newer000")
    manager.explanations["aBcDe"] = FAILURE

    assert main(["trial", "why", "aBcDe", "--json"]) == DONE

    assert json.loads(capsys.readouterr().out) == explanation_record(FAILURE)


def test_unknown_trial_is_an_error(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")

    assert main(["trial", "why", "nope0"]) == FAILED

    assert "no experiment has a trial 'nope0'" in capsys.readouterr().err
