"""The benchmark of tuners on data sets: model, cross-validation, test part, ranks per metric.

A tuner proposes hyperparameters of an architecture; the score of cross-validation on the train part
is fed back; when the limit is reached the best ones are trained on all of the train part and scored
on the test part.
"""
