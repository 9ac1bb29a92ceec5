"""The events of the domain and those of the proto contract."""

import re

from nni_proto.experiment.v1 import event_pb2
from svc_common.experiment_events.causes import EndCause, EndReason
from svc_manager.domain import events
from svc_manager.domain.trial import TrialState


def test_every_event_of_the_contract_has_a_class_of_the_same_name() -> None:
    contract = {field.name for field in event_pb2.Event.DESCRIPTOR.oneofs_by_name["kind"].fields}

    classes = {
        re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower() for kind in events.Event.__args__
    }

    assert classes == contract


def test_an_end_is_one_of_the_trial_unless_it_is_marked() -> None:
    reason = EndReason(EndCause.EXIT_CODE, exit_code=1)
    end = events.TrialEnded("abcde", 1, TrialState.FAILED, 1, 2_000, reason, 5)

    assert not end.infrastructure
