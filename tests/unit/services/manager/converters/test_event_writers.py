from nni_proto.experiment.v1 import event_pb2
from svc_manager.converters.event_writers import WRITERS
from svc_manager.domain import events


def test_every_event_has_a_writer() -> None:
    assert set(WRITERS) == set(events.Event.__args__)


def test_unset_limits_stay_unset() -> None:
    message = event_pb2.Event()

    WRITERS[events.BudgetChanged](message, events.BudgetChanged(None, 7, None))

    assert message.budget_changed.max_trial_number == 7
    assert not message.budget_changed.HasField("trial_concurrency")
