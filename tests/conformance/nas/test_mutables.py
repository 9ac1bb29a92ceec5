"""Every mutable passes the conformance suite that `nni.testing` ships."""

from scipy import stats

from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    ExpressionConstraint,
    Mutable,
    MutableDict,
    MutableExpression,
    MutableList,
    Numerical,
)
from nni.testing import MutableConformance


class TestCategorical(MutableConformance):
    def make(self) -> Mutable:
        return Categorical([1, "x", None, 2.5], label="a")


class TestWeightedCategorical(MutableConformance):
    def make(self) -> Mutable:
        return Categorical([1, 2, 3], weights=[0.2, 0.5, 0.3], default=3, label="a")


class TestCategoricalOfContainers(MutableConformance):
    def make(self) -> Mutable:
        return Categorical([{"kernel": 3}, [1, 2], {1}], label="a")


class TestSubset(MutableConformance):
    def make(self) -> Mutable:
        return CategoricalMultiple([1, 2, 3], label="a")


class TestWeightedSubset(MutableConformance):
    def make(self) -> Mutable:
        return CategoricalMultiple([1, 2, 3], weights=[0.2, 1, 0.5], default=[2], label="a")


class TestCombination(MutableConformance):
    def make(self) -> Mutable:
        return CategoricalMultiple([[1], "x", 3], n_chosen=2, label="a")


class TestWeightedCombination(MutableConformance):
    def make(self) -> Mutable:
        return CategoricalMultiple("abcd", n_chosen=2, weights=[0.1, 0.2, 0.3, 0.4], label="a")


class TestUniform(MutableConformance):
    def make(self) -> Mutable:
        return Numerical(-1, 2, label="a")


class TestQuantized(MutableConformance):
    def make(self) -> Mutable:
        return Numerical(1, 10, quantize=3, label="a")


class TestLogarithmic(MutableConformance):
    def make(self) -> Mutable:
        return Numerical(1e-4, 1, log_distributed=True, label="a")


class TestNormal(MutableConformance):
    def make(self) -> Mutable:
        return Numerical(mu=1, sigma=2, label="a")


class TestTruncatedLogarithmicNormal(MutableConformance):
    def make(self) -> Mutable:
        return Numerical(0.5, 4, mu=0, sigma=1, log_distributed=True, label="a")


class TestDistribution(MutableConformance):
    def make(self) -> Mutable:
        return Numerical(0, 5, distribution=stats.expon(scale=2), label="a")


class TestExpression(MutableConformance):
    def make(self) -> Mutable:
        a, b = Categorical([2, 3], label="a"), Numerical(1, 4, quantize=1, label="b")
        return MutableExpression.condition(a > 2, a * b.int(), MutableExpression.max(a, b, 3))


class TestConstraint(MutableConformance):
    def make(self) -> Mutable:
        a, b = Categorical([1, 3], label="a"), Categorical([2, 4], label="b")
        return ExpressionConstraint(a + b == 5, label="c")


class TestList(MutableConformance):
    def make(self) -> Mutable:
        a, b = Categorical([1, 2, 3], label="a"), Categorical([2, 3], label="b")
        return MutableList([a, b, a * 2, ExpressionConstraint(a < b, label="c")])


class TestDict(MutableConformance):
    def make(self) -> Mutable:
        inner = MutableList([CategoricalMultiple("xyz", n_chosen=1, label="c")])
        return MutableDict({"width": Categorical([16, 32], label="w"), "inputs": inner})
