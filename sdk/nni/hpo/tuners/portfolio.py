"""Portfolio: several tuners in one search, which share its trials, to compare them.

Each configuration is the proposal of one of the tuners, and its provenance names that one. How the
trials are shared is in `_trial_shares`.
"""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

from nni.errors import NoMoreTrialError
from nni.hpo.base import (
    CANCELED,
    DEFERRED,
    Resumable,
    Tuner,
    generate,
    is_resumable,
    samples,
)
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import checked_optimize_mode, loss_of
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.factory import check_listed, create
from nni.hpo.registry.named_tuners import NamedTuner, check_tuners, named_tuners
from nni.hpo.registry.rules import OneOf, TunerList
from nni.hpo.space.domains import configuration_hash
from nni.hpo.tuners._trial_shares import SharePolicy, TrialShares

_DEFAULT: Final = ("TPE", "Random")
"""Whether a model is better than chance on this problem."""
_SEED_STEP: Final = 0x9E3779B97F4A7C15
"""The 64-bit golden ratio keeps the seeds of the tuners apart."""


@algorithm(
    "Portfolio",
    use_when="It is not known which tuner suits the problem, or two are to be compared on it.",
    parallel="All are served, each by the tuner whose turn it is.",
    tuners_argument="tuners",
    argument_check=check_tuners,
    priors=True,
    extra="hpo",
)
class PortfolioTuner(Tuner):
    """Several tuners that share the trials of one search, each with its own results.

    Each tuner learns the results of its own proposals only, so that the comparison is fair. All
    learn imported results, which none of them has proposed. A tuner that has no more proposals
    leaves its trials to the others. Tuners that add keys to configurations, such as PBTTuner, and
    portfolios are refused.

    Args:
        tuners: names, or dicts with `name`, optional `classArgs` without `optimize_mode`, and an
            optional `label`; None for TPE and Random.
        policy: `equal` for the same number of trials each, in turn; `bandit` for more trials to
            those whose latest results are more often among the best quarter of all.
        share_results: whether each tuner also learns the results of the others, as imported ones:
            a better search, but no fair comparison any more.
        optimize_mode: `maximize` or `minimize`, of all tuners.
        seed: from which the seeds of the tuners are derived, unless their `classArgs` have one;
            None for different ones in every process.

    Examples:
        >>> from nni.hpo import PortfolioTuner
        >>> tuner = PortfolioTuner(["TPE", "Random"], optimize_mode="minimize", seed=0)
        >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
        >>> for number in range(4):
        ...     proposed = tuner.generate_parameters(number)
        ...     print(number, tuner.proposer_of(number))
        0 TPE
        1 Random
        2 TPE
        3 Random
    """

    imports_failures: ClassVar[bool] = True
    learns_stopped: ClassVar[bool] = True

    def __init__(
        self,
        tuners: Annotated[list[JsonValue] | None, TunerList()] = None,
        policy: Annotated[SharePolicy, OneOf("equal", "bandit")] = "equal",
        share_results: bool = False,  # noqa: FBT001, FBT002 - an argument of configurations
        optimize_mode: Mode = "maximize",
        seed: Seed = None,
    ) -> None:
        self._mode = checked_optimize_mode(optimize_mode)
        named = named_tuners(_DEFAULT if tuners is None else tuners)
        self._labels = [one.label for one in named]
        self._tuners = [
            _created(one, index, seed, optimize_mode) for index, one in enumerate(named)
        ]
        self._shares_results = share_results
        self._shares = TrialShares(policy, len(named))
        self._owners: dict[int, int] = {}
        """Index of the tuner that proposed it, by id of each open trial."""
        self._without_result: set[int] = set()
        """Ids of the open trials that have no result yet."""
        self._noted: dict[str, list[int]] = {}
        """Indices of the proposers of results that will be imported, by configuration."""

    @property
    def resumable(self) -> bool:
        """True if the states of all tuners can be saved."""
        return all(map(is_resumable, self._tuners))

    @property
    def learns_durations(self) -> bool:
        """True if one of the tuners learns the run times of trials."""
        return any(tuner.learns_durations for tuner in self._tuners)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the tuners, in order."""
        return tuple(self._labels)

    @property
    def trials(self) -> dict[str, int]:
        """Number of proposals by label of the tuner."""
        return dict(zip(self._labels, self._shares.trials, strict=True))

    def proposer_of(self, parameter_id: int) -> str:
        """Return the label of the tuner that proposed an open trial; empty if it is unknown.

        Args:
            parameter_id: of the trial.

        Returns:
            One of `labels`, or an empty text.
        """
        index = self._owners.get(parameter_id)
        return "" if index is None else self._labels[index]

    def update_search_space(self, search_space: JsonValue) -> None:
        """Set the search space of all tuners."""
        for tuner in self._tuners:
            tuner.update_search_space(search_space)

    def prepare_parameters(self) -> None:
        """Prepare the next proposal of the tuner that is next in turn."""
        self._tuners[self._shares.order()[0]].prepare_parameters()

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> JsonValue:
        """Return the proposal of the tuner that is next in turn, or of the next one that has one.

        Raises:
            NoMoreTrialError: no tuner has a proposal.
        """
        later = kwargs.get("st_callback")
        for index in self._shares.order():
            self._opened(parameter_id, index)
            answer = generate(
                self._tuners[index], [parameter_id], later if callable(later) else None
            )
            if answer.parameters or answer.deferred:
                self._shares.started(index)
                return answer.parameters[0][1] if answer.parameters else DEFERRED
            self._closed(parameter_id)
        raise NoMoreTrialError(f"none of {', '.join(self._labels)} has more trials")

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Pass a result to the tuner that proposed it; the others import shared results."""
        index = self._owners.get(parameter_id)
        if index is None:
            return  # of a trial that has ended
        self._tuners[index].receive_trial_result(parameter_id, parameters, value, **kwargs)
        if parameter_id not in self._without_result:
            return  # it was reported before
        self._without_result.discard(parameter_id)
        self._count_result(index, value)
        if self._shares_results:
            for other in range(len(self._tuners)):
                if other != index:
                    self._import(other, [{"parameter": parameters, "value": value}])

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """Pass the end of a trial to the tuner that proposed it."""
        index = self._owners.get(parameter_id)
        if index is None:
            return
        if parameter_id in self._without_result and kwargs.get("event") not in CANCELED:
            self._shares.failed(index)
        self._closed(parameter_id)
        tuner = self._tuners[index]
        if not tuner.learns_stopped:
            kwargs.pop("intermediate", None)
        if not tuner.learns_durations:
            kwargs.pop("duration_s", None)
        tuner.trial_end(parameter_id, success, **kwargs)

    def note_proposers(self, data: Sequence[dict[str, JsonValue]]) -> None:
        """Record the tuners that proposed the results which `import_data` gets next.

        Args:
            data: samples; `tuner` is the label of the proposer. Those of other labels are skipped.
        """
        for sample in data:
            label = sample.get("tuner")
            if label in self._labels:
                key = configuration_hash(sample["parameter"])
                self._noted.setdefault(key, []).append(self._labels.index(label))

    def resume_search(self, data: list[dict[str, JsonValue]]) -> None:
        """Import results of this search from before its interruption, each to its proposer.

        Args:
            data: samples, see `note_proposers`.
        """
        self.note_proposers(data)
        self.import_data(data)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Import samples into all tuners, or only their proposer if results are not shared."""
        parts: list[list[dict[str, JsonValue]]] = [[] for _ in self._tuners]
        for sample in samples(data):
            item = {"parameter": sample.parameter, "value": sample.value}
            noted = self._noted.get(configuration_hash(sample.parameter))
            owner = noted.pop(0) if noted else None
            if owner is not None:
                self._shares.started(owner)
                self._count_result(owner, sample.value)
            for index, part in enumerate(parts):
                if owner in {None, index} or self._shares_results:
                    part.append(item)
        for index, part in enumerate(parts):
            self._import(index, part)

    def import_curves(self, curves: list[dict[str, JsonValue]]) -> None:
        """Pass curves of earlier trials to the tuners that learn from stopped ones."""
        for tuner in self._tuners:
            if tuner.learns_stopped:
                tuner.import_curves(curves)

    def import_durations(self, durations: list[dict[str, JsonValue]]) -> None:
        """Pass run times of earlier trials, of any proposer, to the tuners that learn them."""
        for tuner in self._tuners:
            if tuner.learns_durations:
                tuner.import_durations(durations)

    def state(self) -> dict[str, JsonValue]:
        """Return the state of all tuners, shares and open trials as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return {
            "tuners": [tuner.state() for tuner in self._resumable()],
            "shares": self._shares.state(),
            "owners": list(self._owners.items()),
            "without_result": sorted(self._without_result),
            "noted": self._noted,
        }

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the state of all tuners, shares and open trials.

        Args:
            state: what `state` of a tuner with the same arguments and search space returned.
        """
        for tuner, saved in zip(self._resumable(), state["tuners"], strict=True):
            tuner.load_state(saved)
        self._shares.load_state(state["shares"])
        self._owners = {int(key): int(index) for key, index in state["owners"]}
        self._without_result = set(map(int, state["without_result"]))
        self._noted = {key: list(indices) for key, indices in state["noted"].items()}

    def _resumable(self) -> list[Resumable]:
        return [tuner for tuner in self._tuners if isinstance(tuner, Resumable)]

    def _opened(self, parameter_id: int, index: int) -> None:
        self._owners[parameter_id] = index
        self._without_result.add(parameter_id)

    def _closed(self, parameter_id: int) -> None:
        del self._owners[parameter_id]
        self._without_result.discard(parameter_id)

    def _count_result(self, index: int, value: JsonValue) -> None:
        """Reward a tuner for a result; one without a finite number counts as a failure."""
        loss = loss_of(value, self._mode)
        if loss is None:
            self._shares.failed(index)
        else:
            self._shares.succeeded(index, loss)

    def _import(self, index: int, data: list[dict[str, JsonValue]]) -> None:
        """Import samples into a tuner; those of failed trials only if it learns them."""
        tuner = self._tuners[index]
        if not tuner.imports_failures:
            data = [item for item in data if not _is_nan(item["value"])]
        if data:
            tuner.import_data(data)


def _created(named: NamedTuner, index: int, seed: int | None, optimize_mode: str) -> Tuner:
    """Return a tuner of the list, seeded by its place; ValueError if it is refused."""
    own = None if seed is None else (seed + index * _SEED_STEP) % 2**63
    try:
        check_listed(named.name)
        return create("tuner", named.name, named.class_args, own, optimize_mode)
    except ValueError as error:
        raise ValueError(f"tuners[{index}]: {error}") from error


def _is_nan(value: JsonValue) -> bool:
    return isinstance(value, float) and math.isnan(value)
