"""The same experiment from Python: the type is the search space."""

from pathlib import Path

from space import Training

from nni.experiment import Experiment
from nni.hpo import configuration

experiment = Experiment("local")
experiment.config.experiment_name = "typed-space"
experiment.config.trial_command = "python3 trial.py"
experiment.config.trial_code_directory = Path(__file__).parent
experiment.config.trial_concurrency = 2
experiment.config.max_trial_number = 20
experiment.config.search_space = Training
experiment.config.tuner.name = "TPE"
experiment.config.tuner.class_args["optimize_mode"] = "minimize"
experiment.config.tuner.class_args["seed"] = 0

if __name__ == "__main__":
    experiment.start(8080)
    try:
        experiment.wait_completion()
        best = min(experiment.export_data(), key=lambda trial: trial.value)
        print(f"best value {best.value:.6f} with {configuration(Training, best.parameter)}")
    finally:
        experiment.stop()
