"""Train a network, save its weights beside the code of the job, and write the job's description."""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save

HERE = Path(__file__).parent
CODE = HERE / "code"
sys.path.insert(0, str(CODE))

from stripes import evaluate, make, train, training_step  # noqa: E402 - found by the path above

WIDTH = 16


def save_weights(model):
    """Write the tensors to a file that is named by its SHA-256, and return that."""
    content = save(model.state_dict())
    digest = hashlib.sha256(content).hexdigest()
    (CODE / f"{digest}.safetensors").write_bytes(content)
    return digest


def describe(weights):
    return {
        "model": {"factory": "stripes:make", "kwargs": {"width": WIDTH}, "weights": weights},
        "evaluator": {"factory": "stripes:make_evaluator"},
        "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}],
        "algorithm": {"name": "TaylorPruner", "arguments": {"training_steps": 10}},
        "schedule": {"name": "agp", "iterations": 3},
        "fine_tuning": {"max_epochs": 2},
        "speedup": True,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10, help="of training")
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = make(WIDTH)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    train(model, optimizer, training_step, None, None, options.epochs)
    job = describe(save_weights(model))
    (HERE / "job.json").write_text(json.dumps(job, indent=2) + "\n", "utf-8")
    print(f"accuracy {evaluate(model):.2f} %; wrote {HERE / 'job.json'}")


if __name__ == "__main__":
    main()
