"""Command of a trial that evaluates one model: `python -m nni.nas.execution.trial`."""

import nni
from nni.nas.execution.candidate import model_from


def main() -> None:
    """Evaluate the model of this trial; its evaluator reports the metrics."""
    model_from(nni.get_next_parameter()).execute()


if __name__ == "__main__":
    main()
