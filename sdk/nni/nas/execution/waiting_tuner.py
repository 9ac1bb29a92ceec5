"""Tuner of an experiment whose trials are added from outside."""

from nni.hpo.base import DEFERRED, Tuner
from nni.hpo.json_value import JsonValue


class WaitingTuner(Tuner):
    """Tuner that proposes nothing, so that an experiment waits for trials that a user adds.

    Examples:
        >>> from nni.hpo.base import DEFERRED
        >>> WaitingTuner().generate_multiple_parameters([0, 1]) == [DEFERRED, DEFERRED]
        True
    """

    def update_search_space(self, search_space: JsonValue) -> None:
        """Ignore the space."""

    def generate_multiple_parameters(
        self, parameter_id_list: list[int], **kwargs: object
    ) -> list[JsonValue]:
        """Return `DEFERRED` for each id: no configuration ever follows."""
        del kwargs
        return [DEFERRED for _ in parameter_id_list]

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Ignore a result."""
