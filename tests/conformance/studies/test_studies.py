"""What a study of one process has in common with a shared one, which runs the same cases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nni.hpo import Study
from tests.support.study_suite import CASES, Make


@pytest.mark.parametrize("check", CASES, ids=lambda check: check.__name__)
def test_a_study_of_one_process(check: Callable[[Make], None]) -> None:
    check(Study)
