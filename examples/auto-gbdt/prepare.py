"""Write the training and test data of the example as two text files, target first."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

FOLDER = Path(__file__).parent / "data"


def main():
    patients, progression = load_diabetes(return_X_y=True)
    rows = np.column_stack([progression, patients])
    train, test = train_test_split(rows, test_size=0.25, random_state=99)
    FOLDER.mkdir(exist_ok=True)
    np.savetxt(FOLDER / "regression.train", train, fmt="%.6g", delimiter="\t")
    np.savetxt(FOLDER / "regression.test", test, fmt="%.6g", delimiter="\t")
    print(f"{len(train)} rows for training and {len(test)} for the test")


if __name__ == "__main__":
    main()
