"""What does one ask of TPE cost after 100 to 100,000 results, and what does one tell?

CPU time with one BLAS thread, ten mixed parameters: 3 floats, 3 of logarithmic scale, 2 integers, 2
choices. Optuna and hyperopt answer the same question in the same run, up to 10,000 results. Targets
for an ask: 2, 3, 4 and 6 ms; for a tell 0.1 ms.
"""

import logging
import statistics
import subprocess
import sys
import time
import warnings
from typing import Any

import hyperopt
import numpy as np
import optuna
from threadpoolctl import threadpool_limits

from nni.hpo import TPETuner
from tests.benchmarks.measure import print_figure, print_header
from tests.benchmarks.mixed_space import SPACE, drawn_points, value_of

SEED = 0
SIZES = {100: "<= 2 ms", 1_000: "<= 3 ms", 10_000: "<= 4 ms", 100_000: "<= 6 ms"}
MOST_FOR_PEERS = 10_000
"""Results that the peers are given; with more, filling them takes minutes."""
REPETITIONS = 100
PEER_REPETITIONS = 15
Sample = tuple[dict[str, Any], float]


def history(size: int) -> list[Sample]:
    return [(point, value_of(point)) for point in drawn_points(size, SEED)]


def ours(samples: list[Sample]) -> tuple[list[float], list[float]]:
    tuner = TPETuner(seed=SEED)
    tuner.update_search_space(SPACE)
    tuner.import_data([{"parameter": point, "value": value} for point, value in samples])
    asks, tells = [], []
    for parameter_id in range(REPETITIONS):
        start = time.process_time()
        point = tuner.generate_parameters(parameter_id)
        asks.append((time.process_time() - start) * 1000)
        value = value_of(point)
        start = time.process_time()
        tuner.receive_trial_result(parameter_id, point, value)
        tuner.trial_end(parameter_id, True)
        tells.append((time.process_time() - start) * 1000)
    return asks, tells


def optuna_ask(samples: list[Sample]) -> list[float]:
    distributions: dict[str, optuna.distributions.BaseDistribution] = {
        **{f"f{i}": optuna.distributions.FloatDistribution(-5, 5) for i in range(3)},
        **{f"l{i}": optuna.distributions.FloatDistribution(1e-5, 1, log=True) for i in range(3)},
        "i0": optuna.distributions.IntDistribution(1, 19),
        "i1": optuna.distributions.IntDistribution(0, 99),
        "c0": optuna.distributions.CategoricalDistribution(["a", "b", "c", "d"]),
        "c1": optuna.distributions.CategoricalDistribution(["x", "y"]),
    }
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=SEED))
    study.add_trials(
        [
            optuna.trial.create_trial(params=point, distributions=distributions, value=value)
            for point, value in samples
        ]
    )
    asks = []
    for _ in range(PEER_REPETITIONS):
        start = time.process_time()
        trial = study.ask(distributions)
        asks.append((time.process_time() - start) * 1000)
        study.tell(trial, value_of(trial.params))
    return asks


def hyperopt_ask(samples: list[Sample]) -> list[float]:
    space = {
        **{f"f{i}": hyperopt.hp.uniform(f"f{i}", -5, 5) for i in range(3)},
        **{f"l{i}": hyperopt.hp.loguniform(f"l{i}", np.log(1e-5), 0) for i in range(3)},
        "i0": hyperopt.hp.randint("i0", 1, 20),
        "i1": hyperopt.hp.randint("i1", 0, 100),
        "c0": hyperopt.hp.choice("c0", ["a", "b", "c", "d"]),
        "c1": hyperopt.hp.choice("c1", ["x", "y"]),
    }
    options = {"c0": ["a", "b", "c", "d"], "c1": ["x", "y"]}
    trials = hyperopt.Trials()
    domain = hyperopt.Domain(lambda _point: 0.0, space)
    documents = []
    for tid, (point, value) in enumerate(samples):
        coded = {k: options[k].index(v) if k in options else v for k, v in point.items()}
        documents.append(
            {
                "state": hyperopt.JOB_STATE_DONE,
                "tid": tid,
                "spec": None,
                "result": {"status": "ok", "loss": value},
                "misc": {
                    "tid": tid,
                    "cmd": None,
                    "idxs": {k: [tid] for k in coded},
                    "vals": {k: [v] for k, v in coded.items()},
                },
                "exp_key": None,
                "owner": None,
                "version": 0,
                "book_time": None,
                "refresh_time": None,
            }
        )
    trials.insert_trial_docs(documents)
    trials.refresh()
    asks = []
    for index in range(PEER_REPETITIONS):
        start = time.process_time()
        hyperopt.tpe.suggest([len(samples) + index], domain, trials, index)
        asks.append((time.process_time() - start) * 1000)
    return asks


def memory_mib() -> float:
    """Return the peak memory of an interpreter that holds a tuner with 10,000 results."""
    program = (
        "import nni.hpo as h\n"
        f"space = {SPACE!r}\n"
        "r = h.RandomTuner(seed=0); r.update_search_space(space)\n"
        "t = h.TPETuner(seed=0); t.update_search_space(space)\n"
        "for i in range(10000):\n"
        "    t.receive_trial_result(i, r.generate_parameters(i), float(i % 97))\n"
        "t.generate_parameters(10000)\n"
        # ru_maxrss would start with what the parent held at the fork
        "status = open('/proc/self/status').read()\n"
        "print(int(status.split('VmHWM:')[1].split()[0]) / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    return float(done.stdout)


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print_header(str(__doc__), seed=SEED, packages=["numpy", "optuna", "hyperopt"])
    for size, target in SIZES.items():
        samples = history(size)
        with threadpool_limits(1):
            asks, tells = ours(samples)
            peers = {}
            if size <= MOST_FOR_PEERS:
                peers = {"optuna": optuna_ask(samples), "hyperopt": hyperopt_ask(samples)}
        print_figure(f"ask, {size} results", asks, "ms CPU", target=target)
        for peer, times in peers.items():
            print_figure(f"  {peer}", times, "ms CPU")
            ratio = statistics.median(asks) / statistics.median(times)
            print(f"     ours / {peer}: {ratio:.3f}")
        print_figure(f"tell, {size} results", tells, "ms CPU", target="<= 0.1 ms")
    print_figure("peak memory of the process, 10,000 results", [memory_mib()], "MiB")


if __name__ == "__main__":
    main()
