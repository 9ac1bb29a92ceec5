"""The documented class behind the names TPE, Random and Anneal; a thin front of the three."""

from nni.hpo.base import Tuner
from nni.hpo.json_value import JsonValue
from nni.hpo.tuners.anneal import AnnealTuner
from nni.hpo.tuners.random_search import RandomTuner


class HyperoptTuner(Tuner):
    """Chooses an algorithm by name and hands every call on to it.

    Args:
        algorithm_name: `tpe`, `random_search` or `anneal`.
        optimize_mode: `maximize` or `minimize`.
        parallel_optimize: see `TPETuner`.
        constant_liar_type: see `TPETuner`.
        seed: of all draws; None for different ones in every process.

    Raises:
        RuntimeError: the algorithm is unknown.
    """

    def __init__(
        self,
        algorithm_name: str,
        optimize_mode: str = "minimize",
        parallel_optimize: bool = False,  # noqa: FBT001, FBT002 - documented signature
        constant_liar_type: str = "min",
        seed: int | None = None,
    ) -> None:
        if algorithm_name == "tpe":
            from nni.hpo.tuners.tpe import TPETuner

            self._tuner: TPETuner | RandomTuner | AnnealTuner = TPETuner(
                optimize_mode,
                parallel_optimize=parallel_optimize,
                constant_liar_type=constant_liar_type,
                seed=seed,
            )
        elif algorithm_name == "random_search":
            self._tuner = RandomTuner(optimize_mode, seed)
        elif algorithm_name == "anneal":
            self._tuner = AnnealTuner(optimize_mode, seed)
        else:
            raise RuntimeError(
                f"algorithm_name must be 'tpe', 'random_search' or 'anneal', got {algorithm_name!r}"
            )

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base."""
        self._tuner.update_search_space(search_space)

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """See the base."""
        return self._tuner.generate_parameters(parameter_id, **kwargs)

    def get_suggestion(self, random_search: bool = False) -> dict[str, JsonValue]:  # noqa: FBT001, FBT002 - documented signature
        """Return one suggestion that no trial stands for; true forces a draw from the prior."""
        if isinstance(self._tuner, RandomTuner):
            return self._tuner.generate_parameters(-1)
        return self._tuner.suggest(from_prior=random_search)

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """See the base."""
        self._tuner.receive_trial_result(parameter_id, parameters, value, **kwargs)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """See the base."""
        self._tuner.trial_end(parameter_id, success, **kwargs)

    def state(self) -> dict[str, JsonValue]:
        """Return what `load_state` needs to go on from here, as JSON."""
        return self._tuner.state()

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Go on from a state of a tuner that was built and given its space alike."""
        self._tuner.load_state(state)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """See the base."""
        self._tuner.import_data(data)
