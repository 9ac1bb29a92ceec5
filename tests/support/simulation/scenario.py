"""Scenario of a simulation: an experiment, message noise, faults and user requests."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from enum import Enum


class Algorithm(Enum):
    """Tuner or advisor of the experiment; the first three are built-in."""

    RANDOM = "Random"
    GRID = "GridSearch"
    TPE = "TPE"
    DEFERRING = "deferring advisor"
    """`tests.support.simulation.deferring_advisor`: answers some requests only after results."""
    ENDING = "deferring advisor with an end"
    """The same with a limit of jobs; it may send `NoMoreTrialJobs` without a request."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Unreliability of messages; every rate is a probability per message."""

    lost: float = 0.0
    """A request or its answer is lost and sent again; a lost signal is not repeated."""
    duplicated: float = 0.0
    """A message arrives once more, up to ``late_s`` later."""
    late: float = 0.0
    """A message takes up to ``late_s`` instead of about a millisecond."""
    late_s: float = 5.0
    deduplicates: bool = True
    """Whether the bus drops a message whose id it has seen; correctness may not depend on it."""


class FaultKind(Enum):
    """Kind of an injected fault."""

    KILL_MANAGER = "kill manager"
    KILL_DISPATCHER = "kill dispatcher"
    KILL_HOST = "kill host"
    KILL_AGENT = "kill agent"
    FREEZE_MANAGER = "freeze manager and start another"
    FREEZE_AGENT = "freeze agent"
    CUT_MANAGER = "cut manager off"
    CUT_DISPATCHER = "cut dispatcher off"
    CUT_AGENT = "cut agent off"
    FILL_DISK = "fill an agent's disk"
    RESTART_BUS = "restart bus"
    SET_CLOCK_AHEAD = "set the clock ahead"
    SET_CLOCK_BACK = "set the clock back"


class UserAction(Enum):
    """Kind of a user's request."""

    KILL_TRIAL = "kill a trial"
    ADD_TRIAL = "add a trial"
    MORE_CONCURRENCY = "raise the concurrency"
    LESS_CONCURRENCY = "lower the concurrency"
    MORE_TRIALS = "raise the trial number"
    IMPORT = "import data"
    STOP_AND_RESUME = "stop, then resume"


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault injected at a virtual time."""

    at_s: float
    kind: FaultKind
    agent: int = 0
    """Index of the agent, modulo their number."""
    lasts_s: float = 1.0
    """Seconds until recovery; for a clock: minutes by which it is set, for good."""


@dataclass(frozen=True, slots=True)
class UserRequest:
    """Request of a user at a virtual time."""

    at_s: float
    action: UserAction


@dataclass(frozen=True, slots=True)
class Scenario:
    """Parameters of one simulation; equal scenarios have equal histories."""

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
    faults: tuple[Fault, ...] = ()
    requests: tuple[UserRequest, ...] = ()
    stopped_at_end: bool = False

    def undisturbed(self) -> Scenario:
        """Return the same experiment without noise and faults."""
        return replace(self, noise=Noise(), faults=())


_QUIET = Noise()


@dataclass(slots=True)
class _ScenarioGenerator:
    """Random generator of scenarios."""

    random: random.Random
    kinds: tuple[FaultKind, ...] = field(default=tuple(FaultKind))

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

    def fault(self) -> Fault:
        return Fault(
            at_s=self.random.uniform(0.0, 60.0),
            kind=self.random.choice(self.kinds),
            agent=self.random.randrange(4),
            lasts_s=10 ** self.random.uniform(-1, 2),
        )

    def request(self) -> UserRequest:
        return UserRequest(self.random.uniform(0.5, 60.0), self.random.choice(tuple(UserAction)))


def random_scenario(seed: int, *, repeatable: bool = False) -> Scenario:
    """Return a random scenario.

    Args:
        seed: seed of the generator and of the simulation.
        repeatable: exclude everything that makes the final history depend on timing: no user
            requests, no assessor, unlimited retries, and a learner only at concurrency 1.
    """
    generator = _ScenarioGenerator(random.Random(seed))
    draw = generator.random
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
        noise=generator.noise(),
        faults=tuple(generator.fault() for _ in range(draw.choice([0, 1, 2, 4, 8, 16]))),
    )
    if repeatable:
        return scenario
    return replace(
        scenario,
        max_duration_s=draw.choice([None, None, None, draw.uniform(5.0, 60.0)]),
        requests=tuple(generator.request() for _ in range(draw.choice([0, 0, 1, 3, 6]))),
        stopped_at_end=draw.random() < 0.3,
    )
