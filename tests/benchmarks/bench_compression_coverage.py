"""Which image classifiers does `nni.compression.prune(model, x, 0.5)` shrink, and exactly?

The 80 classifiers of torchvision and 100 models of distinct families of timm, with random
parameters and norm statistics. No hints are given. Each model is pruned in a process of its own
with limits on CPU time and wall time. It is

- running, if `prune` returns and the smaller model runs;
- exact, if its outputs differ from those of the masked model by at most 1e-4, relative to the
  largest output, for the example and for another image. The masked model is built apart from
  the report: elements that are not in the smaller model are zero;
- smaller, if it has lost 40 % of the parameters outside the classifier.

`--route plain` takes the route of NNI instead: `L1NormPruner` masks half of the output channels of
each Conv2d and Linear, and `ModelSpeedup` removes what is dead. The masked model is then the model
times the masks, with batch norms silent on channels that arrive as zeros. Nothing dead is left if
a second speedup of the result removes nothing.

`--only NAME` picks models by name, `--sample N` every N-th one. `--refusals` lists each parameter
that stays with its reason; `--figures FILE` writes JSON lines. `--device cuda` prunes and checks on
a GPU, in full float32.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import gc
import json
import multiprocessing
import resource
import statistics
import time
import traceback
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import torch
from torch import Tensor, nn

from nni.compression import prune
from nni.compression.pruning import L1NormPruner
from nni.compression.speedup import ModelSpeedup
from nni.compression.speedup.shrinking import outputs_of, relative_error
from tests.benchmarks.compression_models import (
    REMEDY,
    Subject,
    masked_reference,
    masked_twin,
    missing_libraries,
    parameters_outside_classifier,
    randomise,
    subjects,
)
from tests.benchmarks.figures import Figure, at_least, at_most, print_figures
from tests.benchmarks.measure import print_header

SEED = 0
CPU_LIMIT_S = 420
WALL_FACTOR = 4
"""Wall time by CPU time that a process gets on a busy machine."""
EXACT = 1e-4
SMALLER = 0.4
LARGE = 200_000_000


@dataclass(slots=True)
class Outcome:
    """Result for one model."""

    name: str
    failure: str = ""
    """Why the model does not run; empty if it does."""
    error: float = float("inf")
    """Error against the masked model that the benchmark made."""
    reported: float = float("inf")
    """Error that the report states."""
    lost: float = 0.0
    """Part of the parameters outside the classifier."""
    planning_s: float = 0.0
    """CPU time of planning."""
    cpu_s: float = 0.0
    """CPU time of the whole call."""
    parameters: int = 0
    left: float = 0.0
    """Part of the parameters that a second speedup removes."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Reason by parameter that stays whole."""

    @property
    def exact(self) -> bool:
        """Return whether both errors are within the limit."""
        return not self.failure and max(self.error, self.reported) <= EXACT

    @property
    def smaller(self) -> bool:
        """Return whether enough was lost."""
        return not self.failure and self.lost >= SMALLER


def measure(subject: Subject, device: str) -> Outcome:
    """Prune one model and check the result."""
    model, images, other = _prepared(subject, device)
    start = time.process_time()
    smaller, report = prune(model, images, 0.5, time_limit_s=None)
    spent = time.process_time() - start
    twin = masked_twin(model, smaller)
    error = max(
        relative_error(outputs_of(twin, one), outputs_of(smaller, one)) for one in (images, other)
    )
    classes = outputs_of(model, images)[-1].shape[-1]
    before, after = parameters_outside_classifier(model, smaller, classes)
    return Outcome(
        subject.name,
        error=error,
        reported=report.error,
        lost=1 - after / before,
        planning_s=report.planning_s,
        cpu_s=spent,
        parameters=report.parameters_before,
        refusals=dict(report.fixed),
    )


def measure_plain(subject: Subject, device: str) -> Outcome:
    """Mask the filters of one model, speed it up and check the result."""
    model, images, other = _prepared(subject, device)
    pruner = L1NormPruner(model, [{"op_types": ["Conv2d", "Linear"], "sparse_ratio": 0.5}])
    _, masks = pruner.compress()
    pruner.unwrap_model()
    both = torch.cat([images, other])
    reference = masked_reference(model, masks, both)
    full = copy.deepcopy(model)
    start = time.process_time()
    speedup = ModelSpeedup(model, images, masks, time_limit_s=None)
    smaller = speedup.speedup_model()
    spent = time.process_time() - start
    error = max(
        relative_error(outputs_of(reference, one), outputs_of(smaller, one))
        for one in (both[:1], both[1:])
    )
    report = speedup.report
    assert report is not None
    classes = outputs_of(reference, images)[-1].shape[-1]
    before, after = parameters_outside_classifier(full, smaller, classes)
    again = ModelSpeedup(smaller, images, {}, time_limit_s=None)
    again.speedup_model()
    assert again.report is not None
    return Outcome(
        subject.name,
        error=error,
        reported=report.error,
        lost=1 - after / before,
        planning_s=report.planning_s,
        cpu_s=spent,
        parameters=report.parameters_before,
        left=1 - again.report.parameters_after / report.parameters_after,
        refusals={one.layer: one.reason for one in report.kept},
    )


def _prepared(subject: Subject, device: str) -> tuple[nn.Module, Tensor, Tensor]:
    """Return the randomised model and two images on a device."""
    model = subject.build()
    randomise(model, SEED)
    return (
        model.to(device),
        subject.images(SEED).to(device),
        subject.images(SEED + 1).to(device),
    )


ROUTES: Final = {"prune": measure, "plain": measure_plain}


@dataclass(frozen=True, slots=True)
class Terms:
    """How each model is measured."""

    route: str
    """A name of `ROUTES`."""
    device: str
    """Device of the models, such as `cpu` or `cuda`."""
    cpu_limit_s: int
    """CPU time that a model may take."""


def child(subject: Subject, terms: Terms, answer: Connection) -> None:
    """Measure one model within a limit of CPU time, and send the outcome."""
    resource.setrlimit(resource.RLIMIT_CPU, (terms.cpu_limit_s, terms.cpu_limit_s + 10))
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False  # its products have 10 bits: not exact
    try:
        outcome = ROUTES[terms.route](subject, terms.device)
    except Exception as error:  # noqa: BLE001 - the failure of a model is a figure
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        outcome = Outcome(subject.name, failure=text)
    answer.send(dataclasses.asdict(outcome))


def measured_apart(subject: Subject, terms: Terms) -> Outcome:
    """Return the outcome of a model, measured in a child process."""
    gc.collect()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(subject, terms, sender))
    process.start()
    sender.close()
    try:
        limit_s = terms.cpu_limit_s * WALL_FACTOR
        if receiver.poll(limit_s):
            return Outcome(**receiver.recv())
        reason = f"no result within {limit_s} s"
    except EOFError:
        process.join()
        reason = f"ended with code {process.exitcode}; the limit is {terms.cpu_limit_s} s of CPU"
    finally:
        process.kill()
        process.join()
    return Outcome(subject.name, failure=reason)


def print_outcome(outcome: Outcome, route: str, *, refusals: bool) -> None:
    """Print one line for a model, and what stays."""
    if outcome.failure:
        print(f"   {outcome.name:<40} FAILS  {outcome.failure}", flush=True)
        return
    errors = f"{outcome.error:.0e} (report {outcome.reported:.0e})"
    exact = f"exact {outcome.error:.0e}" if outcome.exact else f"INEXACT {errors}"
    whole = route == "prune" and not outcome.smaller
    small = "  NOT SMALLER" if whole else f"  {outcome.left:.1%} LEFT" if outcome.left else ""
    print(
        f"   {outcome.name:<40} runs  {exact}  loses {outcome.lost:6.1%}  "
        f"plans {outcome.planning_s:5.2f} s of {outcome.cpu_s:6.2f} s{small}",
        flush=True,
    )
    for line in refusal_lines(outcome.refusals, every=refusals):
        print(f"      {line}", flush=True)


def refusal_lines(refusals: dict[str, str], *, every: bool) -> list[str]:
    """Return the parameters that stay: all of them, or the first one of each rule."""
    if every:
        return [f"{name}: {reason}" for name, reason in refusals.items()]
    by_rule: dict[str, list[str]] = {}
    for name, reason in refusals.items():
        by_rule.setdefault(reason.split(" (")[0], []).append(name)
    return [
        f"{len(names):4} stay: {refusals[names[0]]}, first {names[0]}" for names in by_rule.values()
    ]


def summary(outcomes: Sequence[Outcome], route: str) -> Iterable[Figure]:
    """Yield the figures of the issue beside their targets."""
    yield at_least("all: running", _part([not one.failure for one in outcomes]), 1)
    yield at_least("all: exact", _part([one.exact for one in outcomes]), 1)
    if route == "plain":
        complete = [not one.failure and one.left == 0 for one in outcomes]
        yield at_least("all: nothing dead is left", _part(complete), 1)
        return
    for library, target in (("torchvision", 0.95), ("timm", 0.85)):
        own = [one for one in outcomes if one.name.startswith("timm/") == (library == "timm")]
        if own:
            part = _part([one.smaller for one in own])
            yield at_least(f"{library}: lose 40 %", part, target, note=f"of {len(own)}")
            times = [one.planning_s for one in own if not one.failure]
            if times:
                yield at_most(f"{library}: planning, median", statistics.median(times), 0.6, " s")
    for what, limit, large in (("up to", 15.0, False), ("above", 60.0, True)):
        found = [
            one.planning_s for one in outcomes
            if not one.failure and (one.parameters > LARGE) == large
        ]  # fmt: skip
        if found:
            yield at_most(f"planning, longest {what} 200 M", max(found), limit, " s")


def _part(flags: Sequence[bool]) -> float:
    return sum(flags) / max(len(flags), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these models")
    parser.add_argument("--route", choices=[*ROUTES], default="prune", help="how to shrink models")
    parser.add_argument("--device", default="cpu", help="device of the models, such as cuda")
    parser.add_argument("--library", choices=["torchvision", "timm"], help="models of one library")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="every N-th model")
    parser.add_argument("--offset", type=int, default=0, help="first model of the sample")
    parser.add_argument("--limit-s", type=int, default=CPU_LIMIT_S, help="CPU seconds a model")
    parser.add_argument("--refusals", action="store_true", help="list each parameter that stays")
    parser.add_argument("--figures", type=Path, help="file for JSON lines")
    chosen = parser.parse_args()
    missing = missing_libraries()
    if missing:
        print(f"not run: {' and '.join(missing)} missing; {REMEDY}")
        return
    warnings.simplefilter("ignore")
    print_header(str(__doc__), seed=SEED, packages=["torch", "torchvision", "timm"])
    wanted = [one for one in subjects() if chosen.library in {None, one.library}]
    if chosen.only:
        wanted = [
            one for one in wanted if {one.name, one.name.removeprefix("timm/")} & {*chosen.only}
        ]
    terms = Terms(chosen.route, chosen.device, chosen.limit_s)
    outcomes = []
    for subject in wanted[chosen.offset :: chosen.sample]:
        outcome = measured_apart(subject, terms)
        outcomes.append(outcome)
        print_outcome(outcome, chosen.route, refusals=chosen.refusals)
        if chosen.figures:
            with chosen.figures.open("a", encoding="utf-8") as file:
                file.write(json.dumps(dataclasses.asdict(outcome)) + "\n")
    print_figures(summary(outcomes, chosen.route))


if __name__ == "__main__":
    main()
