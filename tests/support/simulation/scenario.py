"""What is simulated: an experiment, how unreliable its surroundings are, and what befalls it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from enum import Enum


class Algorithm(Enum):
    """Who proposes; the first three are the library's own."""

    RANDOM = "Random"
    GRID = "GridSearch"
    TPE = "TPE"
    DEFERRING = "deferring advisor"
    """`tests.support.simulation.deferring_advisor`: answers some requests only after results."""
    ENDING = "deferring advisor with an end"
    """The same; it has no more after a few jobs, which it may say without being asked."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How often messages suffer; everything is a probability per message."""

    lost: float = 0.0
    """A request or its answer is lost and sent again; a signal is simply lost."""
    duplicated: float = 0.0
    """A message arrives once more, up to ``late_s`` later."""
    late: float = 0.0
    """A message takes up to ``late_s`` instead of about a millisecond."""
    late_s: float = 5.0
    deduplicates: bool = True
    """Whether the bus forgets a message whose id it has seen; nothing may rely on it."""


class Blow(Enum):
    """What befalls the system."""

    KILL_MANAGER = "kill manager"
    KILL_DISPATCHER = "kill dispatcher"
    KILL_HOST = "kill host"
    KILL_AGENT = "kill agent"
    FREEZE_MANAGER = "freeze manager and start another"
    FREEZE_AGENT = "freeze agent"
    CUT_MANAGER = "cut manager off"
    CUT_DISPATCHER = "cut dispatcher off"
    CUT_AGENT = "cut agent off"
    RESTART_BUS = "restart bus"


class Wish(Enum):
    """What a user asks for."""

    KILL_TRIAL = "kill a trial"
    ADD_TRIAL = "add a trial"
    MORE_CONCURRENCY = "raise the concurrency"
    LESS_CONCURRENCY = "lower the concurrency"
    MORE_TRIALS = "raise the trial number"
    IMPORT = "import data"
    STOP_AND_RESUME = "stop, then resume"


@dataclass(frozen=True, slots=True)
class Disaster:
    """One blow."""

    at_s: float
    blow: Blow
    which: int = 0
    """Which agent, modulo their number."""
    lasts_s: float = 1.0
    """How long until it is back."""


@dataclass(frozen=True, slots=True)
class Request:
    """One wish."""

    at_s: float
    wish: Wish


@dataclass(frozen=True, slots=True)
class Scenario:
    """One simulated experiment; the same scenario gives the same history."""

    seed: int = 0
    algorithm: Algorithm = Algorithm.RANDOM
    trials: int = 8
    concurrency: int = 2
    agents: int = 1
    assessor: bool = False
    trial_retries: int = 2
    retry_failed: int = 0
    failing: bool = True
    """Whether some configurations make a trial fail."""
    include_intermediate: bool = False
    loses_unrenewed: bool = True
    """See `svc_trial_runner.agent.agent.Agent`."""
    max_duration_s: float | None = None
    noise: Noise = Noise()
    disasters: tuple[Disaster, ...] = ()
    requests: tuple[Request, ...] = ()
    stopped_at_end: bool = False

    def undisturbed(self) -> Scenario:
        """Give the same experiment in a world where nothing goes wrong."""
        return replace(self, noise=Noise(), disasters=())


_QUIET = Noise()


@dataclass(slots=True)
class _Dice:
    """Draws scenarios."""

    random: random.Random
    blows: tuple[Blow, ...] = field(default=tuple(Blow))

    def noise(self) -> Noise:
        if self.random.random() < 0.2:
            return _QUIET
        draw = self.random.random
        return Noise(
            lost=0.2 * draw() ** 2,
            duplicated=0.3 * draw() ** 2,
            late=0.2 * draw() ** 2,
            late_s=10 ** self.random.uniform(-1, 2),
            deduplicates=self.random.random() < 0.5,
        )

    def disaster(self) -> Disaster:
        return Disaster(
            at_s=self.random.uniform(0.0, 60.0),
            blow=self.random.choice(self.blows),
            which=self.random.randrange(4),
            lasts_s=10 ** self.random.uniform(-1, 2),
        )

    def request(self) -> Request:
        return Request(self.random.uniform(0.5, 60.0), self.random.choice(tuple(Wish)))


def random_scenario(seed: int, *, repeatable: bool = False) -> Scenario:
    """Draw a scenario.

    Args:
        seed: of everything in it.
        repeatable: without anything that makes the final history depend on timing: no wishes, no
            assessor, as many retries as it takes, and a learner only at concurrency 1.
    """
    dice = _Dice(random.Random(seed))
    draw = dice.random
    kinds = [Algorithm.RANDOM, Algorithm.RANDOM, Algorithm.GRID, Algorithm.TPE]
    algorithm = draw.choice(kinds if repeatable else list(Algorithm))
    learns_alone = repeatable and algorithm is Algorithm.TPE
    scenario = Scenario(
        seed=seed,
        algorithm=algorithm,
        trials=draw.randint(1, 16),
        concurrency=1 if learns_alone else draw.randint(1, 5),
        agents=draw.randint(1, 3),
        assessor=not repeatable and draw.random() < 0.3,
        trial_retries=1_000 if repeatable else draw.choice([0, 1, 2, 2]),
        retry_failed=draw.choice([0, 0, 1]),
        include_intermediate=draw.random() < 0.3,
        loses_unrenewed=draw.random() < 0.7,
        noise=dice.noise(),
        disasters=tuple(dice.disaster() for _ in range(draw.choice([0, 1, 2, 4, 8, 16]))),
    )
    if repeatable:
        return scenario
    return replace(
        scenario,
        max_duration_s=draw.choice([None, None, None, draw.uniform(5.0, 60.0)]),
        requests=tuple(dice.request() for _ in range(draw.choice([0, 0, 1, 3, 6]))),
        stopped_at_end=draw.random() < 0.3,
    )
