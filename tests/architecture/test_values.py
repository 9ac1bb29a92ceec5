"""Values of domains, ports, agents and the algorithms library are frozen and have slots."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = [
    "services/*/svc_*/domain/*.py",
    "services/*/svc_*/ports.py",
    "services/standalone/svc_standalone/**/*.py",
    "services/compressor/svc_compressor/**/*.py",
    "services/nas/svc_nas/**/*.py",
    "services/trial-runner/svc_trial_runner/**/*.py",
    "services/common/svc_common/experiment_events/*.py",
    "sdk/nni/hpo/**/*.py",
]
MUTABLE = {
    "services/dispatcher/svc_dispatcher/domain/algorithm_state.py": {"_Trial"},
    "services/dispatcher/svc_dispatcher/domain/failures.py": {"FailureLedger"},
    "services/dispatcher/svc_dispatcher/domain/replay.py": {"_GenerationFacts"},
    "services/manager/svc_manager/domain/lease.py": {"TakeoverSchedule"},
    "services/manager/svc_manager/domain/state.py": {"Algorithm", "Experiment", "FailedStarts"},
    "services/manager/svc_manager/domain/trial.py": {"Trial"},
    "services/trial-runner/svc_trial_runner/adapters/local_processes.py": {"_Warm"},
    "services/trial-runner/svc_trial_runner/adapters/report_spool.py": {"_Experiment", "_Segment"},
    "services/trial-runner/svc_trial_runner/agent/agent.py": {"_Held"},
    "services/trial-runner/svc_trial_runner/attempts/gpu_allocation.py": {"_Waiter"},
    "services/trial-runner/svc_trial_runner/domain/claims.py": {"Claim", "JournalState"},
    "services/trial-runner/svc_trial_runner/fleet/adapters/memory.py": {"InMemoryPlatform"},
    "services/trial-runner/svc_trial_runner/fleet/domain/decisions.py": {"Timers"},
    "services/trial-runner/svc_trial_runner/fleet/domain/pool.py": {
        *("AgentRecord", "PlatformRecord", "Pool"),
    },
    "services/trial-runner/svc_trial_runner/fleet/domain/shared_pools.py": {"SharedPool"},
    "services/trial-runner/svc_trial_runner/reporting/recovery.py": {"InheritedReports"},
    "sdk/nni/hpo/advisors/_halving_advisor.py": {"_Running"},
    "sdk/nni/hpo/advisors/asha.py": {"_Run"},
    "sdk/nni/hpo/host/checkpoints.py": {"CheckpointSchedule"},
    "sdk/nni/hpo/search/_scalarization.py": {"Scalarizer"},
    "sdk/nni/hpo/search/driver.py": {"CallbackGuard", "ParameterTable", "Provenance"},
    "sdk/nni/hpo/search/managed_tuner.py": {"_ConfigurationHistory"},
    "sdk/nni/hpo/search/tuner_driver.py": {"_History"},
    "sdk/nni/hpo/simulation/simulator.py": {"_Simulation", "_Trial"},
    "sdk/nni/hpo/simulation/table_training.py": {"TableTraining"},
    "sdk/nni/hpo/tuners/bayesian/search_modes.py": {"RecentGains", "TrustRegion"},
    "sdk/nni/hpo/tuners/density/liars.py": {"Extent"},
}
"""Classes that hold state: a fold, a history or a schedule changes them in place."""
MODULES = sorted({path for place in PLACES for path in ROOT.glob(place)})


def dataclasses_of(path: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield each dataclass of a module with the options that are switched on."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
            if ast.unparse(call.func) == "dataclass":
                options = {
                    str(option.arg)
                    for option in call.keywords
                    if ast.literal_eval(option.value) is True
                }
                yield node.name, options


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_values_are_frozen_and_have_slots(path: Path) -> None:
    found = dict(dataclasses_of(path))
    thawed = {name for name, options in found.items() if "frozen" not in options}

    assert thawed == MUTABLE.get(path.relative_to(ROOT).as_posix(), set())
    assert [name for name, options in found.items() if "slots" not in options] == []
