"""Cross-validate one way to predict how a patient's diabetes will be a year later."""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVR

import nni

FOLDS = 5
SEED = 0


def build(model):
    """Return the regressor that the chosen branch of the search space describes."""
    options = {key: value for key, value in model.items() if key != "_name"}
    if model["_name"] == "ridge":
        features = PolynomialFeatures(options.pop("degree"), include_bias=False)
        return make_pipeline(features, Ridge(**options))
    if model["_name"] == "svr":
        return SVR(gamma="scale", **options)
    return GradientBoostingRegressor(random_state=SEED, **options)


def main():
    model = nni.get_next_parameter().get("model") or {"_name": "ridge", "degree": 1, "alpha": 1.0}
    patients, progression = load_diabetes(return_X_y=True)

    errors = []
    for train, test in KFold(FOLDS, shuffle=True, random_state=SEED).split(patients):
        regressor = build(model).fit(patients[train], progression[train])
        away = regressor.predict(patients[test]) - progression[test]
        errors.append(float((away**2).mean()))
        rmse = (sum(errors) / len(errors)) ** 0.5
        nni.report_intermediate_result({"default": rmse, "rmse": rmse})
    nni.report_final_result({"default": rmse, "rmse": rmse})


if __name__ == "__main__":
    main()
