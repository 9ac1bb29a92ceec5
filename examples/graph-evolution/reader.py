"""Network that a graph describes: embeddings, its layers, and the place of the answer."""

import torch
from graphs import ATTENTION, INPUT, OUTPUT, RNN, SELF_ATTENTION, in_order
from torch import nn

WIDTH = 32
"""Numbers for each token, before and after each layer."""


class Attention(nn.Module):
    """Tokens of one text, each beside the tokens of another one that are like it."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(3 * WIDTH, WIDTH)

    def forward(self, text, other):
        weights = torch.softmax(text @ other.transpose(1, 2), dim=-1)
        alike = weights @ other
        return torch.tanh(self.mix(torch.cat([text, alike, text * alike], dim=-1)))


class Rnn(nn.Module):
    """LSTM in both directions."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)

    def forward(self, text):
        return self.lstm(text)[0]


LAYERS = {ATTENTION: Attention, SELF_ATTENTION: Attention, RNN: Rnn}


class Reader(nn.Module):
    """Network of a graph: from a document and a question to the first and last token of the answer.

    Args:
        graph: as the tuner proposes it.
        words: size of the vocabulary.
    """

    def __init__(self, graph, words):
        super().__init__()
        self._graph = graph["layers"]
        self._order = in_order(graph)
        self._words = nn.Embedding(words, WIDTH)
        self._layers = nn.ModuleDict(
            {
                str(number): LAYERS[self._graph[number]["type"]]()
                for number in self._order
                if self._graph[number]["type"] in LAYERS
            }
        )
        self._question = nn.Linear(WIDTH, 2 * WIDTH)
        self._ends = nn.Linear(WIDTH, 2)

    def forward(self, document, question):
        """Return a score for each token to be the first, and to be the last: (batch, token, 2)."""
        texts = {"x": self._words(document), "y": self._words(question)}
        values, outputs = {}, {}
        for number in self._order:
            one = self._graph[number]
            if one["type"] == INPUT:
                values[number] = texts[one["size"]]
                continue
            own, other = self._inputs(one, values)
            if one["type"] == OUTPUT:
                outputs[one["size"]] = own
            elif one["type"] == RNN:
                values[number] = self._layers[str(number)](own)
            else:
                values[number] = self._layers[str(number)](own, own if other is None else other)
        asked = self._question(outputs["y"].mean(1)).unflatten(-1, (WIDTH, 2))
        return outputs["x"] @ asked / WIDTH**0.5 + self._ends(outputs["x"])

    def _inputs(self, one, values):
        """Return the sums of the inputs of a layer: those of its own size, and the others."""
        own, other = [], []
        for source in one["input"]:
            same = self._graph[source]["size"] == one["size"]
            (own if same else other).append(values[source])
        return sum(own), sum(other) if other else None
