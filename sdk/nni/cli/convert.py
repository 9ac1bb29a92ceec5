"""`nnictl config convert`: experiment files of NNI 1.x, written anew in schema v2."""

from __future__ import annotations

from pathlib import Path
from stat import S_IMODE
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nni.cli.output import Messages

if TYPE_CHECKING:
    from nni.experiment.config.schema_v1 import ConvertedDocument

SUFFIX: Final = "_v2"
"""Added to the name of a file for that of the converted one."""
_READ_AND_WRITE: Final = 0o666


def register(app: typer.Typer) -> None:
    """Add the command `convert` to `nnictl config`."""
    app.command("convert")(convert)


def convert(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="The file of schema v1.")
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            show_default=False,
            help="The file to write. Default: FILE with _v2 in its name, in the same folder.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write the schema v2 form of an experiment file of NNI 1.x.

    Comments are not kept. Relative paths stay as they are in the same folder, and become absolute
    in another one. The new file can be read by the same users as the old one.
    """
    from nni.experiment.config.yaml_file import to_yaml
    from nni.experiment.errors import ConfigError, Problem, RefusedError
    from nni.experiment.private_file import write_private

    file = file.expanduser()
    beside = file.parent / f"{file.stem}{SUFFIX}{file.suffix}"
    target = (output or beside).expanduser()
    if not target.parent.is_dir():
        raise ConfigError([Problem("--output", "must be in a folder that exists", str(target))])
    if target.is_dir():
        raise ConfigError([Problem("--output", "must be a file, not a folder", str(target))])
    converted = _converted(file, same_folder=target.resolve().parent == file.resolve().parent)
    if target.exists() and not force:
        raise RefusedError(f"{target} exists; replace it with --force, or name another: -o FILE")
    try:
        write_private(target, to_yaml(converted.document))
        target.chmod(S_IMODE(file.stat().st_mode) & _READ_AND_WRITE)
    except OSError as error:
        raise RefusedError(f"{target} cannot be written: {error}") from error
    messages = Messages()
    if converted.dropped:
        messages.warning(f"without meaning in schema v2: {', '.join(converted.dropped)}")
    messages.info(f"{file} is converted to schema v2: {target}")


def _converted(file: Path, *, same_folder: bool) -> ConvertedDocument:
    """Read a file of schema v1 and convert it to v2; raise ConfigError at a wrong field.

    Raises:
        ConfigError: the file cannot be read, is not of schema v1, or has a wrong field.
    """
    from nni.experiment.config import ExperimentConfig
    from nni.experiment.config.schema_v1 import convert_v1
    from nni.experiment.config.yaml_file import read_yaml
    from nni.experiment.errors import ConfigError

    document = read_yaml(file, "FILE")
    try:
        _require_v1(document)
        converted = convert_v1(document, None if same_folder else file.resolve().parent)
        ExperimentConfig(**converted.document)
    except ConfigError as error:
        raise error.within(str(file)) from error
    return converted


def _require_v1(document: object) -> None:
    from nni.experiment.config.schema_v1 import is_v1
    from nni.experiment.config.yaml_file import require_text_keys
    from nni.experiment.errors import ConfigError, Problem

    if not isinstance(document, dict) or not is_v1(document):
        rule = "must have schema v1, with trainingServicePlatform and without trainingService"
        raise ConfigError([Problem("the file", rule)])
    require_text_keys(document)
