"""Base of the tuners that delegate to another tuner."""

from nni.hpo.base import Resumable, Tuner
from nni.hpo.json_value import JsonValue


class DelegatingTuner(Tuner):
    """Tuner that delegates every call to a `Resumable` tuner, which the subclass chooses."""

    _search: Tuner
    """The tuner that calls are forwarded to; set before the first call."""

    @property
    def learns_durations(self) -> bool:
        """True if the chosen tuner learns the run times of trials."""
        return self._search.learns_durations

    def update_search_space(self, search_space: JsonValue) -> None:
        """Pass a search space to the chosen tuner."""
        self._search.update_search_space(search_space)

    def prepare_parameters(self) -> None:
        """Compute the chosen tuner's next proposal in advance."""
        self._search.prepare_parameters()

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Return the configuration that the chosen tuner generates."""
        configuration: dict[str, JsonValue] = self._search.generate_parameters(
            parameter_id, **kwargs
        )
        return configuration

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Pass the final result of a trial to the chosen tuner, unchanged."""
        self._search.receive_trial_result(parameter_id, parameters, value, **kwargs)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """Pass the end of a trial to the chosen tuner."""
        self._search.trial_end(parameter_id, success, **kwargs)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Pass samples to the chosen tuner, which skips those that it cannot use."""
        self._search.import_data(data)

    def import_curves(self, curves: list[dict[str, JsonValue]]) -> None:
        """Pass curves of earlier trials to the chosen tuner."""
        self._search.import_curves(curves)

    def import_durations(self, durations: list[dict[str, JsonValue]]) -> None:
        """Pass run times of earlier trials to the chosen tuner."""
        self._search.import_durations(durations)

    def expected_results(self, configurations: list[JsonValue]) -> list[float] | None:
        """Return the expected results of the chosen tuner; None if it has none."""
        return self._search.expected_results(configurations)

    def state(self) -> dict[str, JsonValue]:
        """Return the state of the chosen tuner.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return self._resumable().state()

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the state of the chosen tuner.

        Args:
            state: what `state` of a tuner with the same arguments and search space returned.
        """
        self._resumable().load_state(state)

    def _resumable(self) -> Resumable:
        search = self._search
        assert isinstance(search, Resumable)
        return search
