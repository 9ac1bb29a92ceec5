"""The example's optimum is the documented one, and its searches come near to it."""

from itertools import product
from pathlib import Path

import pytest

from tests.support.example_searches import ExampleSearch

FOLDER = "key-value-store"
MIB = 2**20
OPTIMUM = 550_824.34


def test_best_of_all_settings_is_the_documented_one() -> None:
    writes_per_second = ExampleSearch(FOLDER, "evaluate").trial["writes_per_second"]

    settings = product(range(2, 17), repeat=3)
    speeds = {(w, m, c): writes_per_second(w * MIB, m, c) for w, m, c in settings}

    assert max(speeds, key=speeds.__getitem__) == (2, 7, 7)
    assert speeds[2, 7, 7] == pytest.approx(OPTIMUM)


@pytest.mark.parametrize("config", ["config.yml", "tpe.yml"])
def test_search_comes_near_to_the_optimum(config: str) -> None:
    found = ExampleSearch(FOLDER, "evaluate", config).run(trials=60)

    # The usual options reach 0.944 of the optimum; one setting in fifty is above 0.97.
    assert found.best_value > 0.97 * OPTIMUM


def test_db_bench_is_used_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "db_bench"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in *--level0_file_num_compaction_trigger=4*)\n'
        "echo 'fillrandom   :       1.283 micros/op 779289 ops/sec;   89.2 MB/s';; esac\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    assert ExampleSearch(FOLDER, "evaluate").trial["evaluate"]({}) == 779_289
