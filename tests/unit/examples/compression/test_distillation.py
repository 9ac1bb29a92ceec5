"""The example's distilled student is better than the plain one."""

import re

import pytest

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture


def test_distilled_student_is_better_on_average_of_three_seeds(scripts: Scripts) -> None:
    taught = scripts("compression/distillation/prune.py", "--epochs", 10)
    printed = scripts("compression/distillation/distil.py", "--epochs", 40)

    rows = dict(re.findall(r"(plain|distilled) +([\d.]+) %", printed))
    assert float(rows["distilled"]) > float(rows["plain"]) + 0.5
    assert float(taught.split()[1]) > float(rows["distilled"])
    assert printed.count(" 5,028 weights") == 2  # of 50,826: a fifth of the neurons of each layer


def test_options_are_those_of_the_readme(scripts: Scripts) -> None:
    with pytest.raises(SystemExit) as ended:
        scripts("compression/distillation/distil.py", "--model", "huge")

    assert ended.value.code == 2
