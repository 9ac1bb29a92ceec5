"""Installed distribution of a third party whose entry points add algorithms."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nni.hpo.registry import factory


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a distribution that adds tuners and claims a name that is taken."""
    (tmp_path / "third_party_of_a_test.py").write_text(
        "from nni.hpo import AlgorithmEntry, RandomTuner\n"
        "class Lucky(RandomTuner): pass\n"
        "lucky = AlgorithmEntry('Lucky', 'tuner', 'third_party_of_a_test:Lucky',\n"
        "    'third_party_of_a_test.Lucky', types=('uniform',))\n"
        "alone = AlgorithmEntry('Alone', 'tuner', 'third_party_of_a_test:Lucky',\n"
        "    'third_party_of_a_test.Lucky', takes_assessor=False)\n"
        "tpe = AlgorithmEntry('TPE', 'tuner', 'third_party_of_a_test:Lucky', 'x.y')\n"
        "broken = AlgorithmEntry('Broken', 'tuner', 'no_such_module_at_all:T', 'x.y',\n"
        "    extra='broken')\n"
    )
    folder = tmp_path / "third_party_of_a_test-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: third-party-of-a-test\nVersion: 1.0\n"
    )
    (folder / "entry_points.txt").write_text(
        "[nni.hpo]\n"
        "lucky = third_party_of_a_test:lucky\n"
        "alone = third_party_of_a_test:alone\n"
        "tpe = third_party_of_a_test:tpe\n"
        "broken = third_party_of_a_test:broken\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "third_party_of_a_test", raising=False)
    factory._third_party.cache_clear()
    yield tmp_path
    factory._third_party.cache_clear()
