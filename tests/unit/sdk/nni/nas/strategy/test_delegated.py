from __future__ import annotations

from nni.nas.strategy import Random
from nni.nas.strategy.delegated import DelegatedStrategy


class Waiting(DelegatedStrategy):
    """Strategy that leaves all to its delegate."""

    def _run(self) -> None: ...


def test_delegate_is_kept_unused_and_the_strategy_has_no_state() -> None:
    strategy = Waiting(Random(seed=0))

    strategy.load_state_dict({"anything": 1})

    assert strategy.delegate.status == "empty"
    assert strategy.state_dict() == {}
