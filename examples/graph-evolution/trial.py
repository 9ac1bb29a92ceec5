"""Train the network of a graph to find a question's tokens in a document."""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import torch
from graphs import smallest
from reader import Reader
from torch import nn

import nni

WORDS = 40
DOCUMENT, ANSWER = 16, 3
"""Tokens of a document and of a question. The answer is the only run equal to the question."""
TRAINING, TEST = 1600, 400
BATCH = 40
RATE = 1e-2


def texts(count, generator):
    """Return documents, questions, and the first and last token of each answer."""
    documents = torch.randint(WORDS, (count, DOCUMENT), generator=generator)
    first = torch.randint(DOCUMENT - ANSWER + 1, (count,), generator=generator)
    places = first[:, None] + torch.arange(ANSWER)
    questions = documents.gather(1, places)
    runs = documents.unfold(1, ANSWER, 1)
    once = (runs == questions[:, None]).all(-1).sum(1) == 1
    return documents[once], questions[once], places[once][:, [0, -1]]


def accuracies(graph):
    """Train a network; yield the part of the test's answers that it finds after each epoch."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    documents, questions, answers = texts(TRAINING, generator)
    test_documents, test_questions, test_answers = texts(TEST, generator)
    reader = Reader(graph, WORDS)
    epochs, batches = graph["epochs"], -(-len(documents) // BATCH)
    optimizer = torch.optim.Adam(reader.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * batches)
    for _epoch in range(epochs):
        for rows in torch.randperm(len(documents)).split(BATCH):
            scores = reader(documents[rows], questions[rows])
            optimizer.zero_grad()
            nn.functional.cross_entropy(scores, answers[rows]).backward()
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            found = reader(test_documents, test_questions).argmax(1)
        yield (found == test_answers).all(1).float().mean().item()


def main():
    for accuracy in accuracies(nni.get_next_parameter() or smallest()):
        nni.report_intermediate_result(accuracy)
    nni.report_final_result(accuracy)


if __name__ == "__main__":
    main()
