"""The same experiment from Python: run it, then read the best result."""

from pathlib import Path

from nni.experiment import Experiment

experiment = Experiment("local")
experiment.config.experiment_name = "quadratic"
experiment.config.trial_command = "python3 trial.py"
experiment.config.trial_code_directory = Path(__file__).parent
experiment.config.trial_concurrency = 4
experiment.config.max_trial_number = 20
experiment.config.search_space_file = Path(__file__).parent / "search_space.json"
experiment.config.tuner.name = "TPE"
experiment.config.tuner.class_args["optimize_mode"] = "minimize"
experiment.config.tuner.class_args["seed"] = 0

if __name__ == "__main__":
    experiment.start(8080)
    try:
        experiment.wait_completion()
        best = min(experiment.export_data(), key=lambda trial: trial.value)
        print(f"best value {best.value:.6f} at {best.parameter}")
    finally:
        experiment.stop()
