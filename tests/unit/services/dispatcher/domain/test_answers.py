"""Defaults of a host's outputs."""

from svc_dispatcher.domain.answers import Generated, Ready
from svc_dispatcher.domain.tuner_labels import FIRST_TUNER
from svc_dispatcher.domain.values import Position


def test_generated_parameters_are_neither_the_last_nor_a_part_unless_they_say_so() -> None:
    generated = Generated(Position(1, 0), "r", ())

    assert (generated.exhausted, generated.deferred) == (False, 0)
    assert (generated.released_checkpoints, generated.labels) == ((), FIRST_TUNER)


def test_algorithm_gets_results_as_they_are_unless_it_names_metrics() -> None:
    assert Ready(lookahead=False, assesses=False, provenance=()).learned_metrics == ()
