"""Strategy with middleware between it and the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nni.nas.execution import ExecutionEngine
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.strategy.base import Strategy
from nni.nas.strategy.middleware.base import StrategyMiddleware


class Chain(Strategy):
    """Strategy with middleware, through which models go to the engine and events come back.

    `chain[0]` is the strategy, `chain[1]` the middleware below it, and the last one is above the
    engine. A middleware sees the events of those after it: in
    `Chain(strategy, FailureHandler(metric=0), Filter(...))` the handler can see the rejections of
    the filter.

    Args:
        strategy: the strategy.
        *middlewares: at least one `StrategyMiddleware`.

    Raises:
        ValueError: there is no middleware, or an argument is of another kind.

    Examples:
        >>> from nni.nas.strategy import Random
        >>> from nni.nas.strategy.middleware import Chain, Deduplication, FailureHandler
        >>> chain = Chain(Random(), FailureHandler(retry_patience=1), Deduplication("invalid"))
        >>> [type(part).__name__ for part in (chain[0], chain[1], chain[2])]
        ['Random', 'FailureHandler', 'Deduplication']
    """

    def __init__(self, strategy: Strategy, *middlewares: StrategyMiddleware) -> None:
        super().__init__()
        if not isinstance(strategy, Strategy):
            raise ValueError(f"strategy must be a Strategy, got {strategy!r:.200}")  # noqa: TRY004 - documented type
        if not middlewares:
            raise ValueError("middlewares must hold at least one; use the strategy itself without")
        for one in middlewares:
            if not isinstance(one, StrategyMiddleware):
                raise ValueError(f"middlewares must be StrategyMiddleware, got {one!r:.200}")  # noqa: TRY004 - documented type
        self._strategy = strategy
        self._middlewares = middlewares

    def __getitem__(self, index: int) -> Strategy | StrategyMiddleware:
        """Return the strategy for 0, else a middleware."""
        parts: list[Strategy | StrategyMiddleware] = [self._strategy, *self._middlewares]
        return parts[index]

    def __len__(self) -> int:
        """Return the number of middlewares plus one for the strategy."""
        return 1 + len(self._middlewares)

    @property
    def is_one_shot(self) -> bool:
        """Whether the strategy trains one supernet."""
        return self._strategy.is_one_shot

    @property
    def strategy(self) -> Strategy:
        """Strategy that decides on the models, without the middleware."""
        return self._strategy

    @property
    def engine(self) -> ExecutionEngine:
        """The middleware that the strategy submits to."""
        return self._strategy.engine

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        below = engine
        for middleware in reversed(self._middlewares):
            middleware.set_engine(below)
            below = middleware
        self._strategy.initialize(model_space, below)
        return self._strategy.model_space

    def _run(self) -> None:
        self._strategy.run()

    def state_dict(self) -> dict[str, Any]:
        """Return the states of strategy and middlewares.

        Returns:
            `strategy`, and `middlewares`: a list.
        """
        return {
            "strategy": self._strategy.state_dict(),
            "middlewares": [one.state_dict() for one in self._middlewares],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore strategy and middlewares; raise ValueError for another number of middlewares.

        Args:
            state_dict: what `state_dict` of a chain with the same parts returned.

        Raises:
            ValueError: it is of a chain with more or fewer parts.
        """
        states = state_dict["middlewares"]
        if len(states) != len(self._middlewares):
            raise ValueError(
                f"the state is of {len(states)} middlewares, this chain has "
                f"{len(self._middlewares)}; build the same chain"
            )
        self._strategy.load_state_dict(state_dict["strategy"])
        for middleware, state in zip(self._middlewares, states, strict=True):
            middleware.load_state_dict(state)
