"""Validation of registered algorithms."""

import pytest

from nni.hpo.registry.built_in import BUILT_IN
from svc_dispatcher.adapters.registry_catalog import RegistryCatalog

NUMBERS = {"x": {"_type": "choice", "_value": [1, 2, 4]}}
BATCH = {"combine_params": {"_type": "choice", "_value": [{"x": 1}, {"x": 2}]}}
SPACELESS = ("NetworkMorphism",)
"""Tuner whose search space follows from its arguments."""


@pytest.mark.parametrize(
    ("kind", "name"),
    [(e.kind, e.name) for e in BUILT_IN if e.kind != "assessor" and e.name not in SPACELESS],
)
def test_spaces_whose_constraints_allow_nothing_are_refused_for_every_algorithm(
    kind: str, name: str
) -> None:
    space = BATCH if name == "BatchTuner" else NUMBERS
    catalog = RegistryCatalog()

    catalog.validate(kind, name, {}, {**space, "_constraints": ["x <= 2"]})
    with pytest.raises(ValueError, match="_constraints: none of"):
        catalog.validate(kind, name, {}, {**space, "_constraints": ["x > 4"]})


def test_the_mode_is_what_the_algorithm_will_use() -> None:
    catalog = RegistryCatalog()

    assert catalog.optimize_mode("tuner", "TPE", {}) == "maximize"
    assert catalog.optimize_mode("tuner", "TPE", {"optimize_mode": "minimize"}) == "minimize"
