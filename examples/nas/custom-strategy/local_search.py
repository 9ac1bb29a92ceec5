"""Local search: change one choice of the best architecture so far."""

import random
import threading

from nni.hpo.json_value import random_state, restore_random
from nni.nas.strategy import Strategy
from nni.nas.strategy.utils import (
    DeduplicationHelper,
    OpenModels,
    RetrySamplingHelper,
    SampleCodec,
)


class LocalSearch(Strategy):
    """Search that draws neighbours of the best sample, and random samples where none is new.

    Args:
        seed: of all draws; None for another one each time.
    """

    def __init__(self, seed=None):
        super().__init__()
        self._random = random.Random(seed)
        self._seen = DeduplicationHelper(raise_on_dup=True)
        self._retry = RetrySamplingHelper()
        self._lock = threading.Lock()  # events may come from another thread
        self._running = OpenModels()
        self._best = None  # sample and metric

    def _initialize(self, model_space, engine):
        self._leaves = model_space.simplify()
        engine.register_model_event_callback("training_end", self._model_ended)
        return model_space

    def _run(self):
        while self.wait_for_resource():
            with self._lock:
                sample = self._next_sample()
                if sample is None:
                    return  # every sample was evaluated
                model = self.model_space.freeze(sample)
                self._running.add(model, sample)
            self.engine.submit_models(model)  # without the lock: the model may end at once

    def _next_sample(self):
        if self._best is not None:
            sample = self._retry.retry(self._neighbour, self._best[0])
            if sample is not None:
                return sample
        return self._retry.retry(self._random_sample)

    def _neighbour(self, sample):
        """Return a new sample that differs in one choice; raise an error for any other."""
        label = self._random.choice([one for one in self._leaves if one in sample])
        changed = {key: value for key, value in sample.items() if key != label}
        self._leaves[label].add_random(changed, self._random)
        self.model_space.validate(changed)
        self._seen.dedup(changed)
        return changed

    def _random_sample(self):
        sample = self.model_space.random_sample(random_state=self._random)
        self._seen.dedup(sample)
        return sample

    def _model_ended(self, event):
        with self._lock:
            sample, metric = self._running.end(event), event.model.metric
            if sample is None or metric is None:
                return
            if self._best is None or metric > self._best[1]:
                self._best = sample, metric

    def state_dict(self):
        with self._lock:
            codec = SampleCodec(self._leaves)
            best = None if self._best is None else (codec.encode(self._best[0]), self._best[1])
            seen = self._seen.state_dict(without=self._running.values())
            return {**seen, "best": best, "random_state": random_state(self._random)}

    def load_state_dict(self, state_dict):
        self._seen.load_state_dict(state_dict)
        restore_random(self._random, state_dict["random_state"])
        if state_dict["best"] is not None:
            values, metric = state_dict["best"]
            self._best = SampleCodec(self._leaves).decode(values), metric
