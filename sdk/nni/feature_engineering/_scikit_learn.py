"""Names of scikit-learn and scipy that the selectors use, and the extra that has them.

The only module of the package that imports them, so that a missing extra has one message.
"""

try:
    from scipy.sparse import csr_array, csr_matrix, issparse
    from scipy.special import expit
    from sklearn.base import BaseEstimator
    from sklearn.feature_selection import SelectorMixin, f_classif, f_regression
    from sklearn.model_selection import train_test_split
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.sparsefuncs import mean_variance_axis
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    raise ImportError(
        "selectors of nni need scikit-learn 1.6 or newer; run: pip install 'nni[feature]'"
    ) from error

__all__ = [
    "BaseEstimator",
    "SelectorMixin",
    "check_is_fitted",
    "check_random_state",
    "column_or_1d",
    "csr_array",
    "csr_matrix",
    "expit",
    "f_classif",
    "f_regression",
    "issparse",
    "mean_variance_axis",
    "train_test_split",
    "type_of_target",
    "validate_data",
]
