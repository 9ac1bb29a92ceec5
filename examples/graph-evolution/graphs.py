"""Graphs of layers that read a document and a question, and the changes from one to the next.

A graph is a JSON object: `max_layer_num`, `epochs`, and `layers`, whose numbers are their places in
the list. A layer has

- `type`: 0 attention, 1 self-attention, 2 RNN, 3 input, 4 output;
- `size`: how long its output is, "x" as the document or "y" as the question;
- `input`: numbers of the layers that it reads. Those of its own size are added up: all but one of
  them are skip connections. Attention reads at least one of the other size, too;
- `input_size`, `output_size`: how many different values it reads and gives;
- `output`: numbers of the layers that read it;
- `is_delete`: true for a layer that was removed, whose number is free.
"""

import copy

ATTENTION, SELF_ATTENTION, RNN, INPUT, OUTPUT = range(5)
READS = {ATTENTION: 2, SELF_ATTENTION: 1, RNN: 1, INPUT: 0, OUTPUT: 1}


def layer(kind, size, inputs):
    return {
        "input_size": READS[kind],
        "type": kind,
        "output_size": 0 if kind == OUTPUT else 1,
        "input": list(inputs),
        "size": size,
        "output": [],
        "is_delete": False,
    }


def smallest():
    """Return the graph without hidden layers: the outputs read the inputs."""
    layers = [layer(INPUT, "x", []), layer(INPUT, "y", [])]
    layers += [layer(OUTPUT, "x", [0]), layer(OUTPUT, "y", [1])]
    graph = {"max_layer_num": 50, "epochs": 2, "layers": layers}
    link(graph)
    return graph


def live(graph, *kinds):
    """Return the numbers of the layers that were not removed, of all kinds or of some."""
    return [
        number
        for number, one in enumerate(graph["layers"])
        if not one["is_delete"] and (not kinds or one["type"] in kinds)
    ]


def link(graph):
    """Remove layers that no output needs, and set `output` of all others."""
    needed = {number for output in live(graph, OUTPUT) for number in before(graph, output)}
    for number in live(graph, ATTENTION, SELF_ATTENTION, RNN):
        if number not in needed:
            graph["layers"][number]["is_delete"] = True
    for one in graph["layers"]:
        one["output"] = []
    for number in live(graph):
        for source in graph["layers"][number]["input"]:
            graph["layers"][source]["output"].append(number)


def before(graph, number):
    """Return the layers on which a layer depends, with itself."""
    found, waiting = set(), [number]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += graph["layers"][number]["input"]
    return found


def in_order(graph):
    """Return the numbers of the layers, each after those that it reads."""
    ordered, waiting = [], live(graph)
    while waiting:
        ready = [n for n in waiting if set(graph["layers"][n]["input"]) <= set(ordered)]
        if not ready:
            raise ValueError(f"layers {waiting} of the graph depend on each other in a circle")
        ordered += ready
        waiting = [number for number in waiting if number not in ready]
    return ordered


def of_size(graph, numbers, size):
    return [number for number in numbers if graph["layers"][number]["size"] == size]


def mutated(graph, random):
    """Return a copy of the graph with one change, drawn from those that are possible."""
    changes = list(CHANGES)
    random.shuffle(changes)
    graph = copy.deepcopy(graph)
    next(change for change in changes if change(graph, random))
    link(graph)
    return graph


def identity(graph, random):
    """Keep the network, and train it for longer."""
    graph["epochs"] += 2
    return True


def insert_rnn(graph, random):
    source, target = random.choice(edges(graph))
    return insert(graph, source, target, RNN, [source])


def insert_attention(graph, random):
    """Insert a layer that attends to its own positions, or to those of the other text."""
    source, target = random.choice(edges(graph))
    if random.random() < 0.5:
        return insert(graph, source, target, SELF_ATTENTION, [source])
    size = "y" if graph["layers"][source]["size"] == "x" else "x"
    others = [
        number
        for number in of_size(graph, live(graph, ATTENTION, SELF_ATTENTION, RNN, INPUT), size)
        if target not in before(graph, number)
    ]
    return insert(graph, source, target, ATTENTION, [source, random.choice(others)])


def insert(graph, source, target, kind, inputs):
    """Put a layer between two others, in the first free place; return whether there is one."""
    layers = graph["layers"]
    free = [number for number, one in enumerate(layers) if one["is_delete"]]
    if not free and len(layers) >= graph["max_layer_num"]:
        return False
    number = free[0] if free else len(layers)
    layers[number : number + 1] = [layer(kind, layers[source]["size"], inputs)]
    reads = layers[target]["input"]
    reads[reads.index(source)] = number
    return True


def remove_rnn(graph, random):
    return remove(graph, random, live(graph, RNN))


def remove_attention(graph, random):
    return remove(graph, random, live(graph, ATTENTION, SELF_ATTENTION))


def remove(graph, random, numbers):
    """Remove one of the layers; those that read it read what it has read of its own size."""
    if not numbers:
        return False
    number = random.choice(numbers)
    gone = graph["layers"][number]
    gone["is_delete"] = True
    sources = of_size(graph, gone["input"], gone["size"])
    for target in gone["output"]:
        reads = graph["layers"][target]["input"]
        place = reads.index(number)
        reads[place : place + 1] = [source for source in sources if source not in reads]
    return True


def add_skip(graph, random):
    """Let a layer read another one of its size, from before the layers that it reads."""
    pairs = [
        (source, target)
        for target in live(graph, ATTENTION, SELF_ATTENTION, RNN, OUTPUT)
        for source in of_size(graph, sorted(before(graph, target)), graph["layers"][target]["size"])
        if source != target and source not in graph["layers"][target]["input"]
    ]
    if not pairs:
        return False
    source, target = random.choice(pairs)
    graph["layers"][target]["input"].append(source)
    return True


def remove_skip(graph, random):
    pairs = [
        (source, target)
        for target in live(graph, ATTENTION, SELF_ATTENTION, RNN, OUTPUT)
        if len(own_inputs(graph, target)) > 1
        for source in own_inputs(graph, target)
    ]
    if not pairs:
        return False
    source, target = random.choice(pairs)
    graph["layers"][target]["input"].remove(source)
    return True


def own_inputs(graph, number):
    """Return the inputs of the layer's own size, which are added up."""
    one = graph["layers"][number]
    return of_size(graph, one["input"], one["size"])


def edges(graph):
    """Return the pairs of a layer and one that reads it, of the same size."""
    return [(source, target) for target in live(graph) for source in own_inputs(graph, target)]


CHANGES = (
    identity,
    insert_rnn,
    remove_rnn,
    insert_attention,
    remove_attention,
    add_skip,
    remove_skip,
)
