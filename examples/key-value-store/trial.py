"""Measure a key-value store with one setting: with db_bench if it is installed, else simulated."""

import re
import shutil
import subprocess
import tempfile

from simulator import writes_per_second

import nni

DEFAULTS = {
    "write_buffer_size": 8 * 2**20,
    "min_write_buffer_number_to_merge": 2,
    "level0_file_num_compaction_trigger": 4,
}


def measured(program, settings):
    """Return the writes per second that db_bench of RocksDB measures."""
    with tempfile.TemporaryDirectory() as folder:
        options = [f"--{name}={value}" for name, value in settings.items()]
        command = [program, "--benchmarks=fillrandom", f"--db={folder}", "--num=16000000"]
        command += ["--key_size=20", "--value_size=100", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"^fillrandom\s*:.* (\d+) ops/sec", done.stdout, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"db_bench printed no result of fillrandom: {done.stdout!r}")
    return int(found[1])


def evaluate(parameters):
    settings = {name: int(parameters.get(name, default)) for name, default in DEFAULTS.items()}
    program = shutil.which("db_bench")
    if program is not None:
        return measured(program, settings)
    return writes_per_second(*settings.values())


if __name__ == "__main__":
    nni.report_final_result(evaluate(nni.get_next_parameter()))
