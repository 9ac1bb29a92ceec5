"""Trial of an auto-compression experiment, which reports the result of one set of parameters.

`python3 -m nni.compression.experiment.trial_entry --module_file_name FILE --module_class_name NAME`
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import nni
from nni.compression.experiment.compression_trial import compress_and_measure
from nni.compression.experiment.interface import AbstractAutoCompressionModule
from nni.compression.job.factories import load_factory


def run_trial(module: type[AbstractAutoCompressionModule]) -> None:
    """Compress by the parameters of this trial, and report the final result.

    Args:
        module: code of the user.
    """
    nni.report_final_result(compress_and_measure(module, nni.get_next_parameter()))


def load_module(
    file_name: str, class_name: str, code_directory: Path
) -> type[AbstractAutoCompressionModule]:
    """Import the class that a trial compresses from the code folder; raise TypeError for others.

    Args:
        file_name: file of the class, relative to the code.
        class_name: name of the class.
        code_directory: folder of the code.

    Raises:
        JobError: there is no such class in the folder.
        TypeError: it is no `AbstractAutoCompressionModule`.
    """
    dotted = ".".join(PurePosixPath(file_name).with_suffix("").parts)
    found = load_factory(f"{dotted}:{class_name}", "--module_file_name", code_directory)
    if not isinstance(found, type) or not issubclass(found, AbstractAutoCompressionModule):
        raise TypeError(
            f"{class_name} of {file_name} must derive from AbstractAutoCompressionModule, got "
            f"{found!r}"
        )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the trial of the class that the command line names, in the current folder.

    Args:
        arguments: command line without the program; None for that of the process.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--module_file_name", required=True, help="file relative to the code")
    parser.add_argument("--module_class_name", required=True, help="class in the file")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    run_trial(load_module(options.module_file_name, options.module_class_name, Path.cwd()))


if __name__ == "__main__":
    main()
