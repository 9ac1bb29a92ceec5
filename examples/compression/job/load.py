"""Build the smaller network of a finished job from its files, and evaluate it."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "code"))

from stripes import evaluate, make

from nni.compression.speedup import load_smaller

folder = Path(sys.argv[1])
job = json.loads((Path(__file__).parent / "job.json").read_text("utf-8"))
smaller = load_smaller(make(**job["model"]["kwargs"]), folder)
parameters = sum(one.numel() for one in smaller.parameters())
print(f"accuracy {evaluate(smaller):.2f} %, {parameters:,} parameters")
