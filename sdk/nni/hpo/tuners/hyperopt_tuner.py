"""Documented class of the names TPE, Random and Anneal; delegates to their tuners."""

from typing import TYPE_CHECKING, Final

from nni.hpo.json_value import JsonValue
from nni.hpo.tuners._delegating import DelegatingTuner
from nni.hpo.tuners.anneal import AnnealTuner
from nni.hpo.tuners.random_search import RandomTuner

if TYPE_CHECKING:
    from nni.hpo.tuners.tpe import TPETuner


_RENAMED: Final = {
    "hyperopt_tpe": "tpe",
    "hyperopt_random": "random_search",
    "hyperopt_annealing": "anneal",
}
"""Values of `algorithm_name` before NNI 1.0, and those of today."""


class HyperoptTuner(DelegatingTuner):
    """Tuner that delegates to TPE, random search or annealing, by name.

    Args:
        algorithm_name: `tpe`, `random_search` or `anneal`.
        optimize_mode: `maximize` or `minimize`.
        parallel_optimize: see `TPETuner`.
        constant_liar_type: see `TPETuner`.
        seed: of all random draws; None for another one in every process.

    Raises:
        RuntimeError: the algorithm is unknown.

    Examples:
        >>> from nni.hpo import HyperoptTuner
        >>> tuner = HyperoptTuner("random_search", seed=0)
        >>> tuner.update_search_space({"x": {"_type": "choice", "_value": ["a", "b"]}})
        >>> tuner.get_suggestion()
        {'x': 'b'}
    """

    _search: "TPETuner | RandomTuner | AnnealTuner"

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

            self._search = TPETuner(
                optimize_mode,
                parallel_optimize=parallel_optimize,
                constant_liar_type=constant_liar_type,
                seed=seed,
            )
        elif algorithm_name == "random_search":
            self._search = RandomTuner(optimize_mode, seed)
        elif algorithm_name == "anneal":
            self._search = AnnealTuner(optimize_mode, seed)
        else:
            renamed = _RENAMED.get(algorithm_name)
            remedy = f"; use {renamed!r}" if renamed else ""
            raise RuntimeError(
                "algorithm_name must be 'tpe', 'random_search' or 'anneal', "
                f"got {algorithm_name!r}{remedy}"
            )
        self.imports_failures = self._search.imports_failures  # type: ignore[misc] # of the algorithm

    def get_suggestion(self, random_search: bool = False) -> dict[str, JsonValue]:  # noqa: FBT001, FBT002 - documented signature
        """Return a configuration without registering a trial for it.

        Args:
            random_search: whether to draw from the search space, without a look at the results.

        Returns:
            The configuration.
        """
        if isinstance(self._search, RandomTuner):
            return self._search.generate_parameters(-1)
        return self._search.suggest(from_prior=random_search)
