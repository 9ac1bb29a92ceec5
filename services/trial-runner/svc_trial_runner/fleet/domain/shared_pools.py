"""Pools of the installation: definition and the demands of several experiments, as one need."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from svc_trial_runner.fleet.domain.needs import PoolLimits, PoolNeed, PoolPlatform


@dataclass(frozen=True, slots=True)
class PoolDefinition:
    """Platforms and limits of a pool that serves several experiments."""

    pool: str
    platforms: tuple[PoolPlatform, ...] = ()
    """In the order of preference."""
    limits: PoolLimits = field(default_factory=PoolLimits)
    draining: bool = False
    removed: bool = False
    """True: its agents end and its platforms are cleaned."""
    revision: int = 0
    """Of two definitions of one pool the one with the larger number holds."""
    created_at_ns: int = 0
    """Creation of the pool, in nanoseconds since 1970; tells pools of one name apart."""


@dataclass(slots=True)
class SharedPool:
    """State of one pool of the installation: a fold of its definition and of demands.

    `apply` never fails: messages may be late, repeated, or come from a manager that another one has
    replaced.
    """

    definition: PoolDefinition | None = None
    """None: not known, so that the demands get no agents."""
    demands: dict[str, PoolNeed] = field(default_factory=dict)
    """Last demand of each experiment, by the name of the experiment's own pool."""

    def define(self, definition: PoolDefinition) -> None:
        """Replace the definition unless it is an older one of the same pool.

        One of another pool of the name comes after the end of the present one, whatever its
        revision: the clocks of the managers may differ.
        """
        present = self.definition
        if (
            present is None
            or present.created_at_ns != definition.created_at_ns
            or definition.revision >= present.revision
        ):
            self.definition = definition

    def forget_removed(self) -> None:
        """Forget a removed definition: nothing is left, and a new pool may have its name."""
        if self.definition is not None and self.definition.removed:
            self.definition = None

    def demand(self, owner: str, need: PoolNeed) -> None:
        """Replace the demand of one experiment unless it is older than the current one."""
        before = self.demands.get(owner)
        if before is None or need.log_sequence >= before.log_sequence:
            self.demands[owner] = need

    @property
    def need(self) -> PoolNeed | None:
        """Need of the pool: the sum of its experiments' demands; None without a definition.

        Experiments that have ended demand nothing. An agent gets as many GPUs for a trial as the
        most demanding experiment asks for, because any trial may come to it.
        """
        definition = self.definition
        if definition is None:
            return None
        demands = [one for one in self.demands.values() if not one.closed]
        return PoolNeed(
            definition.pool,
            waiting=sum(one.waiting for one in demands),
            running=sum(one.running for one in demands),
            concurrency=max(1, sum(one.concurrency for one in demands)),
            gpus_per_trial=_most(one.gpus_per_trial for one in demands),
            platforms=definition.platforms,
            limits=definition.limits,
            closed=definition.removed,
            draining=definition.draining,
            log_sequence=definition.revision,
            created_at_ns=definition.created_at_ns,
        )


def _most(numbers: Iterable[int | None]) -> int | None:
    return max((one for one in numbers if one is not None), default=None)
