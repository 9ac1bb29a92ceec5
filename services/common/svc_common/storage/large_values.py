"""Values too large for a message, stored as JSON text in the blob store."""

from collections.abc import Sequence
from typing import Final

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import event_pb2, inbox_pb2
from nni_wire.limits import INLINE_VALUE_LIMIT_BYTES
from nni_wire.values import from_value, write_value
from svc_common.errors import DataLossError, InvalidArgumentError, NotFoundError
from svc_common.large_work import off_loop, parse_json, write_json
from svc_common.logs import get_logger
from svc_common.storage.ports import CONTENT_KIND, BlobStore

_LARGE_MESSAGE_BYTES: Final = 1024 * 1024
"""Messages above this size have smaller values in the store, too."""
_SMALL_VALUE_LIMIT_BYTES: Final = 16 * 1024
"""Larger values of a large message are stored: many of them would exceed the limits of the bus on
bytes and parts."""
_LOGGED_LIMIT: Final = 1_000
"""Unreadable results that one loader names in the log, each once: an agent that reports ever
more of them fills neither disk nor memory."""


class LargeValues:
    """Loader and storer of large values, which messages replace by blob hashes.

    Args:
        store: blob store that all services share.
    """

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._logged: set[tuple[str, str, str]] = set()

    async def resolve_metrics(self, batch: event_pb2.EventBatch, experiment_id: str) -> None:
        """Load the large metric values of a log batch in place; missing, damaged ones become null.

        Agents name these blobs. A value that is missing, damaged or no JSON would otherwise stop
        each reader of the log at the same place, for ever. It counts as a result without a number,
        with an error in the log. An unreachable store raises, so that the reader tries again.

        The loss is recorded nowhere. If the blob is restored later, the next reader of the log sees
        its value. A host then finds that the digest of its commands differs from that of its
        checkpoint, replays the whole log, and reports `AlgorithmDiverged` if it suggests other
        parameters than the recorded ones, which stay in force.

        Args:
            batch: batch of the log, changed in place.
            experiment_id: whose log it is.

        Raises:
            ServiceError: the store cannot be reached.
        """
        for event in batch.events:
            if event.HasField("metric_reported"):
                value = event.metric_reported.metric.value
                if value.HasField("blob_value"):
                    await self._resolve_metric(value, experiment_id, event.metric_reported.trial_id)

    async def _resolve_metric(
        self, value: value_pb2.Value, experiment_id: str, trial_id: str
    ) -> None:
        sha256 = value.blob_value.sha256[:64]
        try:
            await self.resolve([value])
        except (
            NotFoundError,
            DataLossError,
            InvalidArgumentError,  # no hash
            ValueError,  # no JSON, or too deep
            RecursionError,
        ) as error:
            value.Clear()
            self._log_unreadable((experiment_id, trial_id, sha256), error)

    def _log_unreadable(self, place: tuple[str, str, str], error: Exception) -> None:
        if place in self._logged or len(self._logged) >= _LOGGED_LIMIT:
            return
        self._logged.add(place)
        experiment_id, trial_id, sha256 = place
        get_logger().error(
            "a result cannot be read and counts as one without a number",
            experiment=experiment_id,
            trial=trial_id,
            blob=sha256,
            error=str(error)[:200],
        )

    async def resolve(self, values: Sequence[value_pb2.Value]) -> None:
        """Load referenced blobs and write their JSON values in place of the references.

        Raises:
            NotFoundError: the store does not have a referenced blob.
            DataLossError: a blob is damaged.
            ValueError: a blob is no JSON, or nested too deeply.
        """
        for value in values:
            text = await self._store.get(f"{CONTENT_KIND}/{value.blob_value.sha256}")
            await off_loop(len(text), _read_into, value, text)

    async def offload(self, message: inbox_pb2.InboxMessage) -> inbox_pb2.InboxMessage:
        """Move large generated parameters to the blob store, in place; return the message."""
        size_bytes = message.ByteSize()
        large = size_bytes > _LARGE_MESSAGE_BYTES
        limit_bytes = _SMALL_VALUE_LIMIT_BYTES if large else INLINE_VALUE_LIMIT_BYTES
        if size_bytes > INLINE_VALUE_LIMIT_BYTES:
            for item in message.parameters_generated.parameters:
                if item.parameters.ByteSize() > limit_bytes:
                    await self._offload_value(item.parameters)
        return message

    async def _offload_value(self, value: value_pb2.Value) -> None:
        size_bytes = value.ByteSize()
        text = await off_loop(size_bytes, lambda: write_json(from_value(value), size_bytes))
        key = await self._store.put(text)
        value.Clear()
        value.blob_value.sha256 = key.removeprefix(f"{CONTENT_KIND}/")
        value.blob_value.size_bytes = len(text)


def _read_into(value: value_pb2.Value, text: bytes) -> None:
    """Replace a value by that of a JSON text."""
    value.Clear()
    write_value(value, parse_json(text))
