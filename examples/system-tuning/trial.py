"""Compress the same text with xz in one way; report its CPU time and how small the text became."""

import resource
import subprocess
import tempfile
from pathlib import Path

import nni

ALONE = {"finder": "bt4", "mode": "normal", "nice": 64, "depth": 0, "dict_kib": 8192}
ALONE |= {"lc": 3, "lp": 0, "pb": 2}
"""What `xz -6` does."""
TEXT_BYTES = 1_000_000
REPEATS = 2


def text():
    """Return source code of Python's own library: it is there wherever Python is."""
    pieces, size = [], 0
    for path in sorted(Path(tempfile.__file__).parent.glob("*.py")):
        pieces.append(path.read_bytes())
        size += len(pieces[-1])
        if size >= TEXT_BYTES:
            break
    return b"".join(pieces)


def command(p):
    """Return the command line that the parameters describe; it reads from a pipe."""
    filter_ = (
        f"dict={p['dict_kib']}KiB,lc={p['lc']},lp={p['lp']},pb={p['pb']},"
        f"mf={p['finder']},mode={p['mode']},nice={p['nice']},depth={p['depth']}"
    )
    return ["xz", "--format=raw", f"--lzma2={filter_}", "--stdout"]


def cpu_s():
    """Return the CPU time of all processes that this one has waited for, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    line = command(ALONE | nni.get_next_parameter())
    print(*line)
    plain = text()

    took = []
    for _repeat in range(REPEATS):
        before = cpu_s()
        done = subprocess.run(line, input=plain, capture_output=True, check=True)
        took.append(cpu_s() - before)
    seconds = min(took)  # what other programs add is never less than nothing

    ratio = len(done.stdout) / len(plain)
    nni.report_final_result({"default": seconds, "seconds": seconds, "ratio": ratio})


if __name__ == "__main__":
    main()
