from nni.experiment.client import ManagerClient
from nni_proto.common.v1 import remarks_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from tests.support.scripted_experiment_service import (
    ScriptedExperimentService,
    client,
    manager,
)

__all__ = ["client", "manager"]  # fixtures


def test_only_given_remarks_are_sent_each_time_with_a_new_request_id(
    manager: ScriptedExperimentService, client: ManagerClient
) -> None:
    remarks = remarks_pb2.Remarks(note="n", tags=["a"])
    manager.answers = [lambda _request, _context: pb.ChangeRemarksResponse(remarks=remarks)] * 2

    first = client.change_remarks("abcd1234", note="n")
    client.change_remarks("abcd1234", "tria0", tags=[], starred=False)

    asked = manager.requests
    assert first == remarks
    assert (asked[0].note, asked[0].HasField("tags"), asked[0].HasField("starred")) == (
        "n", False, False,
    )  # fmt: skip
    assert (asked[1].trial_id, asked[1].HasField("note")) == ("tria0", False)
    assert asked[1].HasField("tags")
    assert asked[1].HasField("starred")
    assert asked[0].request_id != asked[1].request_id
