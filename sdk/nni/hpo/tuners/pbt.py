"""Population based training: members train step by step; the worst copy the best.

Source: Jaderberg et al., Population Based Training of Neural Networks, arXiv 1711.09846, sections
3 and 4.1 (truncation selection, perturb or resample).

Departures: the steps are synchronous; a member whose trial failed copies another one whatever its
rank, since it may have left no checkpoint.
"""

import logging
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Annotated, Final

from nni.hpo.base import DEFERRED, StartLater, Tuner
from nni.hpo.checkpoint_folders import LOAD_KEY, SAVE_KEY, default_root
from nni.hpo.json_value import JsonValue, random_state, restore_random
from nni.hpo.objectives import checked_optimize_mode, loss_of
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import FloatRange, IntRange, PathText, PositiveNumbers
from nni.hpo.space.domains import (
    ChoiceDomain,
    Domain,
    IntegerDomain,
    NormalDomain,
    Parameter,
    Space,
)
from nni.hpo.space.parser import contains, parse_space
from nni.hpo.tuners._repair import repaired

_logger = logging.getLogger(__name__)

_TRIES: Final = 20
"""Attempts at a perturbation that keeps the constraints; the last one is repaired."""

RESERVED: Final = frozenset({LOAD_KEY, SAVE_KEY})
"""Keys that every configuration has beside those of the space."""


@dataclass(frozen=True, slots=True)
class Member:
    """Member of the population in one step: hyperparameters, checkpoint to load, loss."""

    configuration: dict[str, JsonValue]
    """Hyperparameters, without the checkpoint folders."""

    load: tuple[int, int]
    """Population id and step of the checkpoint that it starts from."""

    loss: float = math.inf
    """Loss of this step; infinite before a result, and without one."""

    ended: bool = False

    @property
    def failed(self) -> bool:
        """True if its trial ended without a finite number."""
        return self.ended and self.loss == math.inf


@algorithm(
    "PBTTuner",
    use_when="A good model is wanted, not a configuration, and trials can save checkpoints.",
    parallel="One trial per member and step; more requests are deferred to the next step.",
    documented_as="nni.algorithms.hpo.pbt_tuner.PBTTuner",
    nested=False,
    reserved=(LOAD_KEY, SAVE_KEY),
    takes_assessor=False,
    imports=False,
)
class PBTTuner(Tuner):
    """Population based training: exploits checkpoints and explores hyperparameters together.

    A trial is one member for one step: it loads from `load_checkpoint_dir`, trains for as long as
    its code decides, saves to `save_checkpoint_dir` and reports. When all members have finished a
    step, each of the worst loads the checkpoint of a random one of the best and copies its
    hyperparameters, perturbed at random; the others continue from their own. Requests beyond the
    population are deferred to the next step. In step 0 both folders are the same and empty. The
    result of a search is a trained model, and not a configuration.

    Imported samples are ignored: they have no checkpoint. No assessor can be used.

    Args:
        optimize_mode: `maximize` or `minimize`.
        all_checkpoint_dir: root of the folders, on storage that all trials share; None for
            `~/nni/checkpoint/<experiment id>`.
        population_size: members, and trials per step.
        factors: a random one of them multiplies a perturbed number.
        factor: the perturbation in the form of NNI 3.0: 0.2 stands for the factors 1.2 and 0.8, and
            takes precedence over `factors`; None for `factors`.
        fraction: share of the population that counts as worst, and as best; at most half is used.
        resample_probability: probability that a value is drawn from its prior instead.
        seed: of all random draws; None for another one in every process.

    Examples:
        >>> from nni.hpo import PBTTuner
        >>> tuner = PBTTuner(all_checkpoint_dir="/checkpoints", population_size=2, seed=0)
        >>> tuner.update_search_space({"lr": {"_type": "choice", "_value": [0.1, 0.01]}})
        >>> member = tuner.generate_parameters(0)
        >>> member["load_checkpoint_dir"], member["save_checkpoint_dir"]
        ('/checkpoints/0/0', '/checkpoints/0/0')
    """

    def __init__(
        self,
        optimize_mode: Mode = "maximize",
        all_checkpoint_dir: Annotated[str | None, PathText()] = None,
        population_size: Annotated[int, IntRange(1, 99_999)] = 10,
        factors: Annotated[Sequence[float], PositiveNumbers()] = (1.2, 0.8),
        fraction: Annotated[float, FloatRange(0, 1)] = 0.2,
        resample_probability: Annotated[float, FloatRange(0, 1)] = 0.25,
        seed: Seed = None,
        factor: Annotated[float | None, FloatRange(0, 1, open_low=True, open_high=True)] = None,
    ) -> None:
        self._mode = checked_optimize_mode(optimize_mode)
        self._root = Path(all_checkpoint_dir or default_root()).expanduser()
        self._size = population_size
        multipliers = factors if factor is None else (1 + factor, 1 - factor)
        self._factors = tuple(float(multiplier) for multiplier in multipliers)
        self._fraction = fraction
        self._resample = resample_probability
        self._rng = Random(seed)
        self._space = Space(())
        self._step = 0
        self._members: list[Member] = []
        self._next_member = 0
        self._running: dict[int, int] = {}
        self._deferred: deque[int] = deque()
        self._start_later: StartLater | None = None
        self._released: list[str] = []

    def update_search_space(self, search_space: JsonValue) -> None:
        """Draw the first population, or redraw waiting members that lie outside a new space."""
        self._space = parse_space(
            search_space, algorithm="PBTTuner", nested=False, reserved=RESERVED, priors=False
        )
        if not self._members:
            self._members = [
                Member(self._space.draw(self._rng), load=(p, 0)) for p in range(self._size)
            ]
            return
        self._members[self._next_member :] = [
            self._inside(member) for member in self._members[self._next_member :]
        ]

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> JsonValue:
        """Return the next member of the step; defer the request until the step has ended."""
        start_later = kwargs.get("st_callback")
        if callable(start_later):
            self._start_later = start_later
            self._serve_deferred()
        if self._next_member < len(self._members):
            return self._send(parameter_id)
        if callable(start_later):  # without a callable the caller asks again
            self._deferred.append(parameter_id)
        return DEFERRED

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Record a member's loss, infinite without a number; the last one starts the next step."""
        del parameters, kwargs
        loss = loss_of(value, self._mode)
        self._end(parameter_id, math.inf if loss is None else loss)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """End a trial; one without a result counts as the worst of its step."""
        del success, kwargs
        self._end(parameter_id, math.inf)

    def released_checkpoints(self) -> list[str]:
        """Return folders released since the last call, which no later trial loads.

        Returns:
            Absolute paths; the next call does not repeat them.
        """
        released, self._released = self._released, []
        return released

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Ignore samples, with a log line, since they have no checkpoint."""
        _logger.info("PBTTuner ignores %d imported samples: they have no checkpoint", len(data))

    def state(self) -> dict[str, JsonValue]:
        """Return random state, step, members, running and deferred trials as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return {
            "rng": random_state(self._rng),
            "step": self._step,
            "members": [[m.configuration, list(m.load), m.loss, m.ended] for m in self._members],
            "next_member": self._next_member,
            "running": [list(item) for item in self._running.items()],
            "deferred": list(self._deferred),
            "released": list(self._released),
        }

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore random state, step, members, running and deferred trials.

        Deferred requests are served after the next request, which passes the callable for them.

        Args:
            state: what `state` of a tuner with the same arguments and search space returned.
        """
        restore_random(self._rng, state["rng"])
        self._step, self._next_member = int(state["step"]), int(state["next_member"])
        self._members = [
            Member(configuration, (load[0], load[1]), loss, ended)
            for configuration, load, loss, ended in state["members"]
        ]
        self._running = dict(state["running"])
        self._deferred = deque(state["deferred"])
        self._released = list(state.get("released", ()))

    def _send(self, parameter_id: int) -> dict[str, JsonValue]:
        """Mark the next member as running; return its configuration with checkpoint folders."""
        index = self._next_member
        self._next_member += 1
        self._running[parameter_id] = index
        member = self._members[index]
        return {
            **member.configuration,
            LOAD_KEY: self._folder(*member.load),
            SAVE_KEY: self._folder(index, self._step),
        }

    def _folder(self, population_id: int, step: int) -> str:
        return str(self._root / str(population_id) / str(step))

    def _end(self, parameter_id: int, loss: float) -> None:
        index = self._running.pop(parameter_id, None)
        if index is None:
            return  # a duplicate report, or one after the result
        self._members[index] = replace(self._members[index], loss=loss, ended=True)
        if all(member.ended for member in self._members):
            self._begin_step()
        self._serve_deferred()

    def _serve_deferred(self) -> None:
        """Start trials for deferred requests while members are left in the step."""
        if self._start_later is None:
            return
        while self._deferred and self._next_member < len(self._members):
            parameter_id = self._deferred.popleft()
            self._start_later(parameter_id, self._send(parameter_id))

    def _begin_step(self) -> None:
        order = sorted(range(self._size), key=lambda index: self._members[index].loss)
        count = min(math.ceil(self._fraction * self._size), self._size // 2)
        best = [index for index in order[:count] if not self._members[index].failed]
        worst = set(order[self._size - count :])
        if not best and not self._members[order[0]].failed:
            best = order[:1]  # a failed member needs a donor, even if no other member does
        kept = {member.load for member in self._members}
        kept.update((index, self._step) for index in range(self._size))
        self._members = [
            self._successor(index, best, worst=index in worst) for index in range(self._size)
        ]
        over = kept - {member.load for member in self._members}
        self._released.extend(self._folder(*place) for place in sorted(over))
        self._step += 1
        self._next_member = 0

    def _successor(self, index: int, best: list[int], *, worst: bool) -> Member:
        """Return a member of the next step: a perturbed copy of a donor, or a continuation."""
        member = self._members[index]
        if best and (worst or member.failed):
            donor = self._rng.choice(best)
            explored = self._explored(self._inside(self._members[donor]).configuration)
            return Member(explored, load=(donor, self._step))
        if member.failed:  # no donor: retry from the last checkpoint with other values
            return Member(self._explored(self._inside(member).configuration), load=member.load)
        return self._inside(Member(member.configuration, load=(index, self._step)))

    def _inside(self, member: Member) -> Member:
        """Return the member; with a new prior draw if it lies outside a changed space."""
        if contains(self._space, member.configuration):
            return member
        return replace(member, configuration=self._space.draw(self._rng))

    def _explored(self, configuration: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for _ in range(_TRIES):
            explored = {
                parameter.key: self._explored_value(parameter, configuration[parameter.key])
                for parameter in self._space.parameters
            }
            if self._space.allows(explored):
                return explored
        return repaired(self._space, explored, self._rng)

    def _explored_value(self, parameter: Parameter, value: JsonValue) -> JsonValue:
        if self._rng.random() < self._resample:
            return Space((parameter,)).draw(self._rng)[parameter.key]
        if isinstance(parameter.domain, ChoiceDomain):
            return _neighbour(parameter.domain, value, self._rng)
        return perturbed(parameter.domain, value, self._rng.choice(self._factors))


def perturbed(domain: Domain, value: float, factor: float) -> float:
    """Return `value * factor`, rounded and clipped to the values of a numeric domain."""
    assert not isinstance(domain, ChoiceDomain)
    moved = value * factor
    if isinstance(domain, IntegerDomain):
        return min(max(round(moved), domain.lower), domain.upper - 1)
    if isinstance(domain, NormalDomain):
        return moved if domain.q is None else round(moved / domain.q) * domain.q
    return domain.snap(moved)


def _neighbour(choice: ChoiceDomain, value: JsonValue, rng: Random) -> JsonValue:
    """Return the option before or after `value`; at an end of the list the only neighbour."""
    position = choice.position(value)
    around = [p for p in (position - 1, position + 1) if 0 <= p < len(choice.options)]
    return choice.options[rng.choice(around)] if around else value
