"""Checkpoints from which the next attempt of a trial continues; `nni` exports the functions.

An attempt that is lost, as when its machine is taken away, is followed by another one, here or
elsewhere. It finds the last complete checkpoint in its folder.
"""

import sys
from operator import index

from nni.trial import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "checkpoint"
"""Folder of the checkpoint in the output folder of a trial."""
MAX_STEP = 2**53
"""Largest step: JSON has no larger integer in other languages."""


def checkpoint_directory() -> "Path":
    """Return the folder for this trial's checkpoint, with the last complete one of it, if any.

    The folder exists and stays the same while the trial runs. What it has at the start of an
    attempt is what it had at the last `save_checkpoint` of an earlier attempt, on whatever machine;
    it is empty if there was none. Outside an experiment it is `nni-checkpoint` in the working
    directory, and the next run of the script there is the next attempt.

    Returns:
        Absolute path; `$NNI_OUTPUT_DIR/checkpoint` in an experiment.

    Raises:
        OSError: the folder cannot be created.

    Examples:
        >>> import nni
        >>> folder = nni.checkpoint_directory()
        >>> folder.name
        'nni-checkpoint'
        >>> (folder / "epoch").exists()
        False
    """
    from pathlib import Path  # 4 ms that only trials with checkpoints pay

    if not settings.in_experiment():
        from nni.trial.standalone_checkpoints import open_folder

        return open_folder()
    folder = Path(settings.required(settings.OUTPUT_DIRECTORY), FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def save_checkpoint(step: int | None = None) -> bool:
    """Declare that the content of `checkpoint_directory` is complete; return whether it is saved.

    A copy of the folder is made before the return, so that the trial may go on writing. It is
    stored in the background where machines share no folder. One process of a trial should call,
    when no other one writes.

    Args:
        step: grows as the trial makes progress, like an epoch or a number of batches; None: one
            more than the last. An attempt that has saved a larger step than all attempts before it
            does not count against `maxTrialRetries`, however it ends.

    Returns:
        False if there is no copy, as on a full disk: a warning on standard error says why, the
        earlier checkpoint stays, and the trial may go on.

    Raises:
        TypeError: `step` is no integer.
        ValueError: it is larger than 2^53.
        TrialChannelError: the agent is gone or refuses.

    Examples:
        >>> import nni
        >>> folder = nni.checkpoint_directory()
        >>> for epoch in range(2):
        ...     _ = (folder / "epoch").write_text(str(epoch))
        ...     print(nni.save_checkpoint(step=epoch))
        True
        True
    """
    number = None if step is None else _checked(step)
    if settings.in_experiment():
        warning = _ask_agent(number)
    else:
        from nni.trial.standalone_checkpoints import complete

        warning = complete(number)
    if warning:
        text = f"WARNING (nni) {warning}; the trial goes on without it"
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - the trial's own output
    return not warning


def _checked(step: int) -> int:
    if isinstance(step, bool):
        raise TypeError(f"step must be an integer, got {step!r}")
    try:
        number = index(step)  # numbers of numpy are integers, too
    except TypeError:
        raise TypeError(
            f"step must be an integer, got {step!r:.80} of type {type(step).__name__}"
        ) from None
    if abs(number) > MAX_STEP:
        raise ValueError(f"step must be between -2^53 and 2^53, got {number}")
    return number


def _ask_agent(step: int | None) -> str:
    """Ask the agent to save the checkpoint; return its warning, empty if it is saved."""
    from nni.trial.channel import request_once

    value = "" if step is None else f',"step":{step}'
    reply = request_once(
        settings.required(settings.SOCKET),
        settings.required(settings.TOKEN),
        f'{{"op":"checkpoint"{value}}}',
    )
    return str(reply.get("warning", ""))
