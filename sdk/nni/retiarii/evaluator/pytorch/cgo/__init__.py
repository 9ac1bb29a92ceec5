"""Evaluators of NNI 2.x for several models in one trial; `evaluator` has the names."""
