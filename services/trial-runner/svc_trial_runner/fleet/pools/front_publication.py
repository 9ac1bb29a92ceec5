"""Publication of the TLS front's address, which people see with the agents."""

from typing import Final

from nni_wire.pools import LOCAL_POOL
from svc_common.clock import Clock
from svc_common.errors import ServiceError
from svc_common.logs import get_logger
from svc_common.messaging.ports import LastValues
from svc_common.subjects import pool_front_subject
from svc_trial_runner.fleet.converters import front_state_to_bytes
from svc_trial_runner.fleet.ports import ObservableFront

RETRY_S: Final = 5.0
"""Pause after a message that the bus did not take."""


class FrontPublication:
    """Publisher of the TLS front's address or closing, at the start and at each change.

    Args:
        last_values: takes the states.
        front: whose state it is.
        clock: delays repetitions.
    """

    def __init__(self, last_values: LastValues, front: ObservableFront, clock: Clock) -> None:
        self._last_values = last_values
        self._front = front
        self._clock = clock

    async def run(self) -> None:
        """Publish the front's state at once and at each change, for ever; retry after failures."""
        subject = pool_front_subject(LOCAL_POOL)
        while True:
            endpoint = self._front.endpoint
            try:
                await self._last_values.publish(subject, front_state_to_bytes(endpoint))
            except ServiceError as error:
                get_logger().warning("state of the front not published", error=error.message)
                await self._clock.sleep(RETRY_S)
            else:
                await self._front.wait_changed(endpoint)
