"""Reader of the progress of explorations, for requests of users."""

from contextlib import aclosing

from nni_proto.experiment.v1 import event_pb2
from svc_common.errors import NotFoundError
from svc_common.messaging.ports import EventLog
from svc_common.storage.large_values import LargeValues
from svc_nas.converters import log_messages
from svc_nas.domain.progress import Progress


class ProgressReader:
    """Reader of an exploration's progress that folds its whole log at each call.

    Args:
        events: the logs.
        values: large values of the logs.
    """

    def __init__(self, events: EventLog, values: LargeValues) -> None:
        self._events = events
        self._values = values

    async def read(self, experiment_id: str) -> Progress:
        """Fold an exploration's whole log to its progress; raise NotFoundError if there is none.

        Raises:
            NotFoundError: no experiment has this id, or it is no exploration.
        """
        progress = Progress()
        async with aclosing(self._events.read(experiment_id)) as history:
            async for message in history:
                batch = event_pb2.EventBatch.FromString(message.payload)
                await self._values.resolve_metrics(batch, experiment_id)
                await self._values.resolve(log_messages.blobs_of(batch))
                for event in log_messages.events_of(batch):
                    progress.feed(event)
        if progress.setup is None or not progress.setup.document_sha256:
            raise NotFoundError("exploration", experiment_id)
        return progress
