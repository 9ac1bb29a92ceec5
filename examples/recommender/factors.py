"""Ratings that are made up, and their factorisation by stochastic gradient descent (SVD)."""

from dataclasses import dataclass

import numpy as np

RANK = 10
"""Of the true preferences."""
BATCH = 500
TERMS = ("bu", "bi", "pu", "qi")
"""Biases of users and items, factors of users and items."""


@dataclass(frozen=True)
class Ratings:
    """Ratings of 1 to 5, by the numbers of their users and items."""

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray

    def part(self, chosen):
        """Return some of the ratings."""
        return Ratings(self.users[chosen], self.items[chosen], self.values[chosen])


def make_ratings(users=943, items=1682, count=100_000, seed=0):
    """Return ratings for training and for the test, a quarter of all."""
    random = np.random.default_rng(seed)
    tastes = random.normal(0, 0.5, (users, RANK))
    traits = random.normal(0, 0.5, (items, RANK))
    user_bias, item_bias = random.normal(0, 0.3, users), random.normal(0, 0.4, items)
    user, item = random.integers(users, size=count), random.integers(items, size=count)
    values = 3.5 + user_bias[user] + item_bias[item] + (tastes[user] * traits[item]).sum(axis=1)
    values += random.normal(0, 0.3, count)
    ratings = Ratings(user, item, np.clip(values, 1, 5))
    order = random.permutation(count)
    return ratings.part(order[count // 4 :]), ratings.part(order[: count // 4])


def rmse(predicted, ratings):
    """Return the root of the mean squared error."""
    return float(np.sqrt(np.mean((np.clip(predicted, 1, 5) - ratings.values) ** 2)))


def sums(groups, values, size):
    """Return the sum of the values of each group."""
    found = np.zeros((size, *values.shape[1:]))
    np.add.at(found, groups, values)
    return found


def bias_only(train, test, damping=5.0):
    """Return the error of means of users and items alone, without factors."""
    size = 1 + max(train.users.max(), train.items.max(), test.users.max(), test.items.max())
    mean = train.values.mean()
    counts = np.bincount(train.items, minlength=size)
    item_bias = sums(train.items, train.values - mean, size) / (counts + damping)
    rest = train.values - mean - item_bias[train.items]
    counts = np.bincount(train.users, minlength=size)
    user_bias = sums(train.users, rest, size) / (counts + damping)
    return rmse(mean + item_bias[test.items] + user_bias[test.users], test)


def errors(parameters, train, test, epochs=None):
    """Yield the error on the test ratings after each epoch.

    Args:
        parameters: `lr_all` and `reg_all` are learning rate and decay of all terms; `lr_bu` and
            its like are factors of them.
        train: ratings that are factorised.
        test: other ratings of the same users and items.
        epochs: instead of `n_epochs`.
    """
    random = np.random.default_rng(0)
    size = 1 + max(train.users.max(), train.items.max(), test.users.max(), test.items.max())
    mean = train.values.mean()
    shape = (size, int(parameters["n_factors"]))
    start = (parameters["init_mean"], parameters["init_std"], shape)
    model = {"bu": np.zeros(size), "bi": np.zeros(size)}
    model |= {"pu": random.normal(*start), "qi": random.normal(*start)}
    rates = {term: parameters["lr_all"] * parameters[f"lr_{term}"] for term in TERMS}
    decays = {term: parameters["reg_all"] * parameters[f"reg_{term}"] for term in TERMS}

    def predicted(ratings):
        factors = (model["pu"][ratings.users] * model["qi"][ratings.items]).sum(axis=1)
        return mean + model["bu"][ratings.users] + model["bi"][ratings.items] + factors

    for _epoch in range(int(parameters["n_epochs"] if epochs is None else epochs)):
        order = random.permutation(len(train.values))
        for chosen in np.array_split(order, -(-len(order) // BATCH)):
            batch = train.part(chosen)
            wrong = batch.values - predicted(batch)
            user_factors, item_factors = model["pu"][batch.users], model["qi"][batch.items]
            slopes = {"bu": wrong, "bi": wrong}
            slopes |= {"pu": wrong[:, None] * item_factors, "qi": wrong[:, None] * user_factors}
            for term in TERMS:
                rows = batch.users if term in {"bu", "pu"} else batch.items
                step = slopes[term] - decays[term] * model[term][rows]
                np.add.at(model[term], rows, rates[term] * step)
        yield rmse(predicted(test), test)
