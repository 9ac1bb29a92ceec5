"""Proposals of a search that knows the results of earlier, related searches.

`TransferProposer` makes a share of the proposals; the tuner makes the others and learns all
results, so that this works for every tuner. The first proposals are the tuner's: their results show
whether the earlier searches agree with this one. If they do not, there is no proposal by them, and
the search is the one without a warm start.

Earlier results enter by their ranks within their search, and for the parameters that both spaces
have: a result whose value lies outside the new range is dropped, and a parameter that a search did
not have is not part of its surrogate.
"""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.encoding.encoded_space import EncodedSpace, VectorKey, vector_keys
from nni.hpo.json_value import JsonValue
from nni.hpo.models.earlier_tasks import EarlierTask, earlier_task
from nni.hpo.models.normal_distribution import log_unit_improvement
from nni.hpo.models.subsets import quantile_subset
from nni.hpo.models.transfer_model import TransferModel, TransferPosterior
from nni.hpo.objectives import Objectives
from nni.hpo.space.domains import Branch, ChoiceDomain, Space
from nni.hpo.space.parser import place
from nni.hpo.tuners.bayesian.candidates import best_untaken, global_candidates

_logger = logging.getLogger(__name__)

MOST_TASKS: Final = 20
"""Earlier searches that are modelled, at most: those with the most results."""
_COLD: Final = 3
"""Own results before the first proposal: they show whether the earlier searches agree."""
_LEAST_TRUST: Final = 0.5
_FULL_TRUST: Final = 0.65
"""Trust in the earlier searches up to which they propose nothing, and from which all they may."""
_GREATEST_SHARE: Final = 0.6
"""Share of the proposals at full trust: the others are the tuner's."""
_MOST_OWN: Final = 120
"""Own results that the model is conditioned on, at most."""
_CANDIDATES: Final = 600
_REFINED: Final = 300
_ROUNDS: Final = 2
"""Candidates of the first round, of each later one, and number of later ones."""
_GOOD: Final = 3
"""Best results of each search near which candidates are drawn."""
_LISTED: Final = 1000
"""Vectors of a finite space up to which all of them are candidates."""


class TransferProposer:
    """Source of proposals by the surrogates of earlier searches.

    Args:
        earlier: the samples `{"parameter", "value"}` of each earlier search.
        objectives: one of them, without limits.
        seed: of all draws; None for different ones in every process.
    """

    def __init__(
        self,
        earlier: Sequence[Sequence[Mapping[str, JsonValue]]],
        objectives: Objectives,
        seed: int | None,
    ) -> None:
        self._earlier = earlier
        self._objectives = objectives
        self._rng = np.random.default_rng(seed)
        self._results: list[tuple[JsonValue, float]] = []
        self._credit = 1.0 - _GREATEST_SHARE
        """Proposals that are due; one is made when it reaches 1."""
        self._space = EncodedSpace(Space(()))
        self._model: TransferModel | None = None
        self._good = np.empty((0, 0))
        self._fitted: tuple[int, TransferPosterior] | None = None

    def update_search_space(self, space: Space) -> None:
        """Set a space, and model the largest earlier searches in it; skip those too small.

        Args:
            space: of the new search.
        """
        self._space = EncodedSpace(space)
        self._fitted = None
        tasks: list[EarlierTask] = []
        good: list[Floats] = []
        for samples in sorted(self._earlier, key=len, reverse=True)[:MOST_TASKS]:
            known, vectors, losses = self._placed(samples)
            task = None
            if len(losses):
                features = self._space.features(vectors)
                task = earlier_task(features, known, self._space.feature_axes, losses)
            if task is None:
                _logger.warning("an earlier search has too few results in this space: left out")
                continue
            tasks.append(task)
            best = vectors[np.argsort(losses, kind="stable")[:_GOOD]]
            good.append(np.where(np.isin(np.arange(len(self._space)), known), best, np.nan))
        self._model = TransferModel(tasks, self._space.feature_axes) if tasks else None
        self._good = np.concatenate(good) if good else np.empty((0, len(self._space)))

    def learn(self, configuration: JsonValue, value: JsonValue) -> None:
        """Record a result of the new search; one that is not finite counts as the worst.

        Args:
            configuration: of the trial.
            value: its report; NaN of a failed trial.
        """
        losses = self._objectives.losses(value)
        loss = math.inf if losses is None or not math.isfinite(losses[0]) else losses[0]
        self._results.append((configuration, loss))
        self._fitted = None

    def propose(self, running: Iterable[JsonValue]) -> dict[str, JsonValue] | None:
        """Return a proposal by earlier searches; None if it is the tuner's turn, or trust is low.

        Args:
            running: configurations of the running trials.
        """
        if self._model is None:
            return None
        own, losses = self._own()
        if len(losses) < _COLD or losses.min() == losses.max():
            return None
        posterior = self._posterior(self._model, own, losses)
        share = (posterior.trust - _LEAST_TRUST) / (_FULL_TRUST - _LEAST_TRUST)
        if share <= 0.0:
            return None
        self._credit += _GREATEST_SHARE * min(share, 1.0)
        if self._credit < 1.0:
            return None
        self._credit -= 1.0
        vector = self._most_promising(posterior, own, losses, self._encoded(running))
        return None if vector is None else self._space.decode(vector)

    def state(self) -> dict[str, JsonValue]:
        """Return results, random state and the share that is due as JSON."""
        return {
            "rng": self._rng.bit_generator.state,
            "results": [
                [configuration, loss if math.isfinite(loss) else None]
                for configuration, loss in self._results
            ],
            "credit": self._credit,
        }

    def load_state(self, state: Mapping[str, JsonValue]) -> None:
        """Restore results, random state and the share that is due from a state."""
        self._rng.bit_generator.state = state["rng"]
        self._results = [
            (configuration, math.inf if loss is None else loss)
            for configuration, loss in state["results"]
        ]
        self._credit = float(state["credit"])
        self._fitted = None

    def _placed(self, samples: Iterable[Mapping[str, JsonValue]]) -> tuple[Ints, Floats, Floats]:
        """Return the axes that a search had, its vectors `(n, d)` and losses `(n,)`."""
        placed: list[tuple[dict[str, JsonValue], float]] = []
        for sample in samples:
            losses = self._objectives.losses(sample["value"])
            found = shared_values(self._space.search_space, sample["parameter"])
            if found and losses is not None and math.isfinite(losses[0]):
                placed.append((found, losses[0]))
        paths = {path for found, _ in placed for path in found}
        axes = self._space.axes
        known = np.array([at for at, axis in enumerate(axes) if axis.path in paths], dtype=np.int64)
        vectors = [self._space.encode_placed(found) for found, _ in placed]
        return (
            known,
            np.array(vectors).reshape(-1, len(axes)),
            np.array([loss for _, loss in placed]),
        )

    def _own(self) -> tuple[Floats, Floats]:
        """Return vectors `(n, d)` and losses `(n,)` of results in the space, infinite as worst."""
        vectors, losses = [], []
        for configuration, loss in self._results:
            try:
                placed = place(self._space.search_space, configuration)
            except ValueError:
                continue
            vectors.append(self._space.encode_placed(placed))
            losses.append(loss)
        found = np.array(losses)
        finite = found[np.isfinite(found)]
        worst = finite.max() if len(finite) else 0.0
        return np.array(vectors).reshape(-1, len(self._space)), np.minimum(found, worst)

    def _encoded(self, configurations: Iterable[JsonValue]) -> Floats:
        vectors = []
        for configuration in configurations:
            try:
                vectors.append(self._space.encode(configuration))
            except ValueError:
                continue  # of an earlier space
        return np.array(vectors).reshape(-1, len(self._space))

    def _posterior(self, model: TransferModel, own: Floats, losses: Floats) -> TransferPosterior:
        """Return the model of the own results, fitted when there are new ones."""
        if self._fitted is not None and self._fitted[0] == len(losses):
            return self._fitted[1]
        kept = quantile_subset(losses, _MOST_OWN)
        posterior = model.fit(self._space.features(own[kept]), losses[kept])
        self._fitted = (len(losses), posterior)
        return posterior

    def _most_promising(
        self, posterior: TransferPosterior, own: Floats, losses: Floats, pending: Floats
    ) -> Floats | None:
        """Return the vector of greatest expected improvement that no trial has; None if none."""
        space = self._space
        taken = vector_keys([*own, *pending]) if len(own) + len(pending) else set()
        if len(pending):
            posterior = posterior.with_pending(space.features(pending))
        best = own[np.argsort(losses, kind="stable")[:_GOOD]]
        listed = space.all_vectors(_LISTED)
        if listed is not None:
            return self._best(posterior, listed, taken)
        drawn = space.sample_filled(self._rng, len(self._good))
        earlier = space.snap(np.where(np.isnan(self._good), drawn, self._good))
        good = np.concatenate([best, earlier])
        candidates = np.concatenate([good, global_candidates(space, good, _CANDIDATES, self._rng)])
        for _ in range(_ROUNDS):
            values = self._values(posterior, candidates)
            top = candidates[np.argsort(-values, kind="stable")[:_GOOD]]
            near = global_candidates(space, top, _REFINED, self._rng)[_REFINED // 2 :]
            candidates = np.concatenate([top, near])
        return self._best(posterior, candidates, taken)

    def _best(
        self, posterior: TransferPosterior, candidates: Floats, taken: set[VectorKey]
    ) -> Floats | None:
        values = self._values(posterior, candidates)
        return best_untaken(self._space, candidates, values, taken)

    def _values(self, posterior: TransferPosterior, candidates: Floats) -> Floats:
        """Return the logarithms of the expected improvements `(m,)`."""
        means, deviations = posterior.predict(self._space.features(candidates))
        values: Floats = np.log(deviations) + log_unit_improvement(
            (posterior.incumbent - means) / deviations
        )
        return values


def shared_values(space: Space, configuration: object) -> dict[str, JsonValue]:
    """Return values by path that a configuration shares with a space; {} if it does not fit.

    Args:
        space: of the new search.
        configuration: of an earlier search, of another space as a rule.

    Returns:
        Path to value, of a choice to the position of its option; empty if a value lies outside the
        new range, or nothing is shared.
    """
    found: dict[str, JsonValue] = {}
    try:
        _add_shared(space, configuration, found)
    except ValueError:
        return {}
    return found


def _add_shared(space: Space, configuration: object, found: dict[str, JsonValue]) -> None:
    if not isinstance(configuration, Mapping):
        return
    for parameter in space.parameters:
        if parameter.key not in configuration:
            continue
        value = configuration[parameter.key]
        if not isinstance(parameter.domain, ChoiceDomain):
            found[parameter.path] = parameter.domain.check(value)
            continue
        position = parameter.domain.position(value)
        found[parameter.path] = position
        option = parameter.domain.options[position]
        if isinstance(option, Branch):
            _add_shared(option.space, value, found)
