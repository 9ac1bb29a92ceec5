"""Command loop of the host: reads commands from a pipe and applies them to the algorithm."""

import logging
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol

from nni.hpo import commands
from nni.hpo.host.checkpoints import CheckpointFile, CheckpointSchedule
from nni.hpo.host.construction import (
    display_name,
    learned_metrics,
    machine_provenance,
    metric_of,
    planned_advisor,
    planned_assessor,
    planned_tuner,
    seed_global_generators,
)
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import is_numeric, part_of
from nni.hpo.search.advisor_driver import AdvisorAlgorithmDriver
from nni.hpo.search.driver import (
    AlgorithmDriver,
    MetricCommand,
    TrialEndCommand,
    failure_report,
    traceback_text,
)
from nni.hpo.search.tuner_driver import TunerDriver

FORMAT: Final = "[%(asctime)s] %(levelname)s (%(name)s/%(threadName)s) %(message)s"
DATE_FORMAT: Final = "%Y-%m-%d %H:%M:%S"

_LEVELS: Final = {
    "trace": 1,  # level 0 would mean that of the parent logger
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
}


def _configure_logging(level: str) -> None:
    """Make all loggers of this process write to stderr from a level on; info if it is unknown.

    Args:
        level: trace, debug, info, warning, error or fatal.
    """
    logging.basicConfig(
        level=_LEVELS.get(level, logging.INFO), format=FORMAT, datefmt=DATE_FORMAT, force=True
    )


_IDENTITY: Final = (
    "experiment_id",
    "position",
    "tuner",
    "assessor",
    "advisor",
    "search_space",
    "seed",
)
"""Keys of `initialize` that are part of a checkpoint's identity."""
_DIGESTED: Final[dict[str, tuple[str, ...]]] = {
    "generate": ("request_id", "parameter_ids"),
    "metric": ("metric",),
    "trial_end": ("end",),
    "import_data": ("data",),
    "import_curves": ("curves",),
    "import_reports": ("reports",),
    "update_search_space": ("search_space",),
    "add_customized": ("parameter_id", "parameters"),
}
"""Keys, by operation, of the values of a command in the digest. They follow from the log alone,
so that a replay repeats them exactly; recorded parameters depend on who has answered."""

_logger = logging.getLogger(__name__)


class Pipe(Protocol):
    """Protocol of a source of commands and sink of messages: `CommandPipe`, or memory."""

    eager: bool
    """True if every completion is reported at once."""

    def commands(self) -> Iterable[dict[str, Any]]:
        """Yield commands until there are no more."""

    def write(self, message: dict[str, Any]) -> None:
        """Write one message."""


class CommandLoop:
    """Handler of commands: `initialize` first, then any others, until the pipe is closed.

    Ends early if the algorithm cannot be constructed or a request for parameters raises; the
    dispatcher decides about a restart.

    Args:
        pipe: source of commands and sink of messages.
        configure_log: function that sets the log level of this process.
        due: schedule of checkpoints; None for the default one.
    """

    def __init__(
        self,
        pipe: Pipe,
        configure_log: Callable[[str], None] = _configure_logging,
        due: CheckpointSchedule | None = None,
    ) -> None:
        self._pipe = pipe
        self._configure_log = configure_log
        self._position: list[int] = [0, 0]
        self._algorithm: AlgorithmDriver | None = None
        self._learned_metrics: tuple[str, ...] = ()
        self._unlearned_count = 0
        self._due = due or CheckpointSchedule()
        self._checkpoints = CheckpointFile(None, {})
        self._restored: list[int] = [0, 0]
        self._digest = 0
        """Digest of all commands of `_DIGESTED`; 0 without checkpoints."""
        self._debugs = False
        """True if each command is logged."""
        self._unverified = False
        """True until the log was seen up to the restored checkpoint, and agrees with it."""

    def run(self) -> None:
        """Handle commands until the pipe is closed or the algorithm is not usable any more."""
        for command in self._pipe.commands():
            if not self.handle(command):
                return

    def handle(self, command: dict[str, Any]) -> bool:
        """Handle one command or skip a restored one; return whether the algorithm is usable."""
        operation, self._position = command["op"], command["position"]
        if self._algorithm is None:
            self._algorithm = self._initialized(command)
            return self._algorithm is not None
        if self._debugs:
            _logger.debug("%s of event %s", operation, self._position)
        if self._unverified and self._position > self._restored and not self._verified():
            return False
        if self._checkpoints.enabled:
            self._digest = digest_with(self._digest, command)
        if self._position <= self._restored and operation not in {"generate", "recorded"}:
            return True  # part of the checkpoint
        if operation == "generate":
            alive = self._generate(self._algorithm, command)
        else:
            self._apply(self._algorithm, command)
            alive = True
        if alive and operation in {"generate", "trial_end"}:
            self._take_checkpoint(self._algorithm)
        return alive

    def _verified(self) -> bool:
        """Return whether the log agrees with the restored checkpoint; delete its file if not.

        The host ends then: the dispatcher starts another one, which replays the log.
        """
        self._unverified = False
        if self._digest == self._checkpoints.digest:
            return True
        self._checkpoints.discard(f"the log up to event {self._restored} differs from it")
        return False

    def prepare(self) -> None:
        """Compute proposals in advance; called while no commands wait."""
        if self._algorithm is not None:
            self._algorithm.prepare()

    def _send(self, message: dict[str, Any]) -> None:
        message["position"] = self._position
        self._pipe.write(message)

    def _initialized(self, command: dict[str, Any]) -> AlgorithmDriver | None:
        self._configure_log(command["log_level"])
        self._debugs = _logger.isEnabledFor(logging.DEBUG)
        _logger.debug("logging at level %s", command["log_level"])
        self._pipe.eager = command["eager"]
        try:
            algorithm = self._built(command)
            algorithm.initialize(command["search_space"])
            self._restore(algorithm, command)
        except (Exception, SystemExit) as error:
            _logger.exception("the algorithm cannot be started")
            self._send(
                {"unbuildable": f"{type(error).__name__}: {error}"}
                | {"traceback": traceback_text()}
            )
            return None
        ready = {
            "lookahead": algorithm.lookahead,
            "assesses": algorithm.assesses,
            "provenance": machine_provenance(),
            "learned_metrics": self._learned_metrics,
        }
        _logger.info("the algorithm is ready")
        self._send({"ready": ready})
        return algorithm

    def _built(self, command: dict[str, Any]) -> AlgorithmDriver:
        seed: int = command["seed"]
        configs = {
            kind: command[kind] for kind in ("tuner", "assessor", "advisor") if command.get(kind)
        }
        custom = any(config.get("class_name") for config in configs.values())
        seed_global_generators(seed, custom=custom)
        if "advisor" in configs:
            origin = _origin(configs["advisor"], seed)
            plan = command.get("plan")
            advisor = planned_advisor(configs["advisor"], plan, seed)
            metric = metric_of(configs["advisor"], plan)
            self._learned_metrics = learned_metrics(configs["advisor"], plan)
            advisor_hosting = AdvisorAlgorithmDriver(advisor, origin, self._send, metric)
            commands.connect(advisor_hosting)
            return advisor_hosting
        origin = _origin(configs["tuner"], seed)
        self._learned_metrics = learned_metrics(configs["tuner"], command.get("plan"))
        tuner = planned_tuner(configs["tuner"], command.get("plan"), seed)
        assessor = None
        if "assessor" in configs:
            assessor = planned_assessor(configs["assessor"], command.get("plan"), seed)
        return TunerDriver(tuner, assessor, origin, self._send)

    def _restore(self, algorithm: AlgorithmDriver, command: dict[str, Any]) -> None:
        """Restore a checkpoint that fits the configuration, versions and log, if there is one."""
        named = not any(
            (command.get(kind) or {}).get("class_name") for kind in ("tuner", "assessor", "advisor")
        )
        # `state` of a custom class may be any attribute.
        path = Path(command["checkpoint"]) if named and command.get("checkpoint") else None
        identity = {key: command[key] for key in _IDENTITY} | machine_provenance()
        if command.get("plan"):
            identity["plan"] = command["plan"]
        self._checkpoints = CheckpointFile(path, identity)
        found = self._checkpoints.load(command.get("log_end"))
        if found is not None:
            position, state = found
            algorithm.restore(state)
            self._restored, self._unverified = position, True
            _logger.info("the algorithm is restored from its checkpoint at event %s", position)

    def _take_checkpoint(self, algorithm: AlgorithmDriver) -> None:
        if self._position <= self._restored or not self._checkpoints.enabled or not self._due():
            return
        began_s = self._due.work_s()
        state = algorithm.snapshot()
        if state is not None:
            self._checkpoints.save(self._position, state, self._digest)
        self._due.taken(began_s)

    def _generate(self, algorithm: AlgorithmDriver, command: dict[str, Any]) -> bool:
        """Generate parameters, and send them unless replayed; return False if that raised."""
        try:
            past = self._position <= self._restored
            make = algorithm.repeat if past else algorithm.generate
            answer = make(command["parameter_ids"])
            if not command["replayed"]:
                self._send(
                    {
                        "parameters": answer.parameters,
                        "request_id": command["request_id"],
                        "exhausted": answer.exhausted,
                        "deferred": answer.deferred,
                        **({"released": answer.released} if answer.released else {}),
                    }
                )
        except Exception:
            _logger.exception("generating parameters failed")
            self._send(failure_report("generate_parameters", skipped=False))
            return False
        return True

    def _apply(self, algorithm: AlgorithmDriver, command: dict[str, Any]) -> None:
        operation = command["op"]
        if operation == "metric":
            metric = MetricCommand(*command["metric"])
            self._note_unlearned(metric)
            algorithm.metric(metric)
        elif operation == "trial_end":
            # Dispatchers of earlier versions send no run time.
            end = (*command["end"], command.get("duration_s"))
            algorithm.trial_end(TrialEndCommand(*end))
        elif operation == "recorded":
            past = self._position <= self._restored
            for parameter_id, parameters in command["parameters"]:
                if not past or algorithm.knows(parameter_id):
                    algorithm.record(parameter_id, parameters)
        elif operation == "update_search_space":
            algorithm.update_search_space(command["search_space"])
        elif operation == "add_customized":
            algorithm.add_customized(command["parameter_id"], command["parameters"])
        else:
            self._import(algorithm, command)

    def _import(self, algorithm: AlgorithmDriver, command: dict[str, Any]) -> None:
        operation = command["op"]
        if operation == "import_data":
            algorithm.import_data(command["data"], own=command.get("own", False))
        elif operation == "import_curves":
            algorithm.import_curves(command["curves"])
        elif operation == "import_reports":
            algorithm.import_reports(command["reports"])

    def _note_unlearned(self, metric: MetricCommand) -> None:
        """Log a final result that lacks a number to learn from: the 1st, the 10th, the 100th..."""
        if metric.customized or not metric.final or not self._lacks_number(metric.value):
            return
        self._unlearned_count += 1
        if str(self._unlearned_count).strip("0") == "1":
            _logger.error(
                "the algorithm learns nothing from the final result of trial %s, %.120r; "
                "report a number under each of %s, a plain number being 'default' (%d such results "
                "so far)",
                metric.trial_id,
                metric.value,
                ", ".join(map(repr, self._learned_metrics)),
                self._unlearned_count,
            )

    def _lacks_number(self, value: JsonValue) -> bool:
        """Return whether a result has no number, or NaN, for a metric that is learned from."""
        numbers = [part_of(value, metric) for metric in self._learned_metrics]
        return any(not is_numeric(number) or number != number for number in numbers)  # noqa: PLR0124 - NaN


def digest_with(digest: int, command: dict[str, Any]) -> int:
    """Return the CRC-32 of commands so far and one more; unchanged for kinds that do not count."""
    operation = command["op"]
    keys = _DIGESTED.get(operation)
    if keys is None:
        return digest
    # The text of a list of position, operation and values, as in all checkpoints so far; made in
    # parts it takes two thirds of the time.
    sequence, index = command["position"]
    values = ", ".join([repr(command[key]) for key in keys])
    text = f"[[{sequence}, {index}], '{operation}', {values}]"
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), digest)


def _origin(config: dict[str, Any], seed: int) -> dict[str, Any]:
    return {"algorithm": display_name(config), "seed": seed}
