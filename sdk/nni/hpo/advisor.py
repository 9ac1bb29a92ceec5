"""Base class of advisors, which are tuner and assessor in one object.

The interface is documented but declared unstable. A host calls `process_command` for one command
after another, or, as NNI 2.x did, enqueues commands, which `run` handles in two worker threads.
"""

import logging
import queue
import threading
from typing import Final

from nni.hpo.commands import CommandType, send
from nni.hpo.json_value import JsonValue

_logger = logging.getLogger(__name__)

_ASSESSMENT: Final = frozenset({"PERIODICAL"})
"""Metric types that need no order relative to the commands that change proposals."""

CommandQueue = queue.Queue[tuple[CommandType, JsonValue] | None]
"""Commands for one worker thread; None ends the thread."""


class MsgDispatcherBase:
    """Base class of advisors: dispatches each command to a `handle_*` method.

    A subclass implements all `handle_*` methods except `handle_request`. With `run`, commands that
    change proposals keep their order in one thread; intermediate metrics have another. With
    `multi_thread` every command gets a thread of its own and the subclass must lock.

    Examples:
        An advisor that proposes one configuration for ever.

        >>> from nni.hpo import CommandType, MsgDispatcherBase, optimize
        >>> class Constant(MsgDispatcherBase):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.count = 0
        ...     def handle_update_search_space(self, data):
        ...         self.value = data["x"]["_value"][0]
        ...     def handle_request_trial_jobs(self, data):
        ...         for _ in range(data):
        ...             job = {"parameter_id": self.count, "parameters": {"x": self.value}}
        ...             self.send(CommandType.NewTrialJob, job)
        ...             self.count += 1
        ...     def handle_report_metric_data(self, data):
        ...         pass
        ...     def handle_trial_end(self, data):
        ...         pass
        >>> space = {"x": {"_type": "choice", "_value": [3, 4]}}
        >>> optimize(lambda p: p["x"], space, advisor=Constant(), trials=2).best_value
        3.0
    """

    multi_thread: bool = False
    """True if each command is handled in a thread of its own."""

    def __init__(self) -> None:
        self._prepare()

    def _prepare(self) -> None:
        self._ordered: CommandQueue = queue.Queue()
        self._assessments: CommandQueue = queue.Queue()
        self._failure: BaseException | None = None
        self._stopped = threading.Event()

    def run(self) -> None:
        """Handle enqueued commands until `Terminate`, in two threads; re-raise a handler's error.

        Raises:
            Exception: the first one that a handler raised.
        """
        self._ensure_prepared()
        workers = [
            threading.Thread(
                target=self.command_queue_worker, args=(commands,), name=name, daemon=True
            )
            for commands, name in (
                (self._ordered, "advisor-commands"),
                (self._assessments, "advisor-assessments"),
            )
        ]
        for worker in workers:
            worker.start()
        self._stopped.wait()
        self._ordered.put(None)
        self._assessments.put(None)
        for worker in workers:
            worker.join()
        if self._failure is not None:
            raise self._failure

    def enqueue_command(self, command: CommandType, data: JsonValue) -> None:
        """Append a command to a queue of `run`; intermediate metrics have their own.

        `Terminate` ends `run` after the commands that were enqueued before it.

        Args:
            command: its kind.
            data: decoded content of the command, argument of its handler.
        """
        self._ensure_prepared()
        periodical = (
            command is CommandType.ReportMetricData
            and isinstance(data, dict)
            and data.get("type") in _ASSESSMENT
        )
        (self._assessments if periodical else self._ordered).put((command, data))

    def command_queue_worker(self, command_queue: CommandQueue) -> None:
        """Handle the commands of one queue until None comes; after a stop, discard them.

        Args:
            command_queue: of one worker thread.
        """
        while (request := command_queue.get()) is not None:
            if self._stopped.is_set():
                continue  # drain the commands behind Terminate
            if request[0] is CommandType.Terminate:
                self._stopped.set()
            elif self.multi_thread:
                threading.Thread(
                    target=self.process_command_thread, args=(request,), daemon=True
                ).start()
            else:
                self.process_command_thread(request)

    def process_command_thread(self, request: tuple[CommandType, JsonValue]) -> None:
        """Handle one command; an exception ends `run`, which raises it.

        Args:
            request: kind and content of the command.
        """
        command, data = request
        try:
            self.process_command(command, data)
        except Exception as error:  # noqa: BLE001 - rim of a worker thread; `run` raises it
            self._failure = self._failure or error
            self._stopped.set()

    def process_command(self, command: CommandType, data: JsonValue) -> None:
        """Call a command's handler in this thread; raise its errors. `Terminate` ends `run`.

        Args:
            command: its kind.
            data: decoded content of the command, argument of its handler.

        Raises:
            ValueError: advisors do not receive this command.
        """
        if command is CommandType.Ping:
            return
        if command is CommandType.Terminate:
            self._ensure_prepared()
            self._stopped.set()
            return
        name = _HANDLERS.get(command)
        if name is None:
            raise ValueError(f"an advisor receives no command {command.name}")
        getattr(self, name)(data)

    def send(self, command: CommandType, data: JsonValue) -> None:
        """Send a command to the host, see `nni.hpo.commands.send`.

        Args:
            command: its kind.
            data: content of the command, as JSON.
        """
        send(command, data)

    def _ensure_prepared(self) -> None:
        if not hasattr(self, "_ordered"):  # a subclass that does not call super().__init__()
            self._prepare()

    def handle_initialize(self, data: JsonValue) -> None:
        """Set the search space, then send `Initialized` with empty content; called once.

        Args:
            data: the search space.
        """
        self.handle_update_search_space(data)
        self.send(CommandType.Initialized, "")

    def handle_update_search_space(self, data: JsonValue) -> None:
        """Replace the search space, without a reply; a subclass must override this.

        Args:
            data: the new search space, JSON.

        Raises:
            TypeError: the advisor does not override this method.
        """
        raise self._missing("handle_update_search_space", data)

    def handle_request_trial_jobs(self, data: int) -> None:
        """Send `data` times `NewTrialJob`, or `NoMoreTrialJobs`; a subclass must override this.

        Args:
            data: number of trials to start.

        Raises:
            TypeError: the advisor does not override this method.
        """
        raise self._missing("handle_request_trial_jobs", data)

    def handle_report_metric_data(self, data: dict[str, JsonValue]) -> None:
        """Process a metric of a trial; a subclass must override this.

        Args:
            data: `parameter_id`, `value` (decoded), `trial_job_id`, `type` (a `MetricType`),
                `sequence`; for requests of parameters also `parameter_index`.

        Raises:
            ValueError: the type is unknown.
            TypeError: the advisor does not override this method.
        """
        raise self._missing("handle_report_metric_data", data)

    def handle_trial_end(self, data: dict[str, JsonValue]) -> None:
        """Process the end of a trial; a subclass must override this.

        Args:
            data: `trial_job_id`, `event` (the final status), `hyper_params` (the JSON text sent
                when the trial was created).

        Raises:
            TypeError: the advisor does not override this method.
        """
        raise self._missing("handle_trial_end", data)

    def handle_import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Process samples that a user imports or a resume replays; the default ignores them.

        Args:
            data: samples `{"parameter": configuration, "value": final result}`.
        """
        _logger.warning("%s ignores %d imported samples", type(self).__qualname__, len(data))

    def handle_add_customized_trial(self, data: JsonValue) -> None:
        """Process a trial that the user added by hand; the default ignores it.

        Args:
            data: id and parameters of the trial.
        """

    def _missing(self, name: str, data: object) -> TypeError:
        del data
        return TypeError(f"{type(self).__qualname__} must override {name}")


_HANDLERS: Final = {
    CommandType.Initialize: "handle_initialize",
    CommandType.RequestTrialJobs: "handle_request_trial_jobs",
    CommandType.UpdateSearchSpace: "handle_update_search_space",
    CommandType.ImportData: "handle_import_data",
    CommandType.AddCustomizedTrialJob: "handle_add_customized_trial",
    CommandType.ReportMetricData: "handle_report_metric_data",
    CommandType.TrialEnd: "handle_trial_end",
}
