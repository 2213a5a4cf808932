"""Tiny heads with all their label sequences, so that every law can be summed out."""

from itertools import product

import torch

from gibbsite.apps.tagging.heads import CRFTransducer, LinearChainCRF, RNNTransducer, Separate, Softmax, Sum

SIZE, LABELS = 5, 3


def source(seed):
    return torch.Generator().manual_seed(seed)


def heads(width=8, device="cpu"):
    made = {
        "softmax": Softmax(SIZE, LABELS, source=source(0)),
        "crf": LinearChainCRF(SIZE, LABELS, source=source(0)),
        "rnn-t": RNNTransducer(SIZE, LABELS, hidden=4, width=width, source=source(0)),
        "crf-t, sum": CRFTransducer(SIZE, LABELS, hidden=4, width=width, source=source(0)),
        "crf-t, separate": CRFTransducer(SIZE, LABELS, design=Separate(), hidden=4, width=width, source=source(0)),
    }
    for head in made.values():
        for k, parameter in enumerate(head.parameters()):
            parameter.data = torch.randn(parameter.shape, generator=source(k), dtype=torch.float64)
    return {name: head.to(device) for name, head in made.items()}


def sentences(mask, device="cpu", seed=0):
    """Features, mask and labels."""
    mask = torch.tensor(mask, dtype=torch.bool)
    features = torch.randn(*mask.shape, SIZE, generator=source(seed), dtype=torch.float64)
    labels = torch.randint(LABELS, mask.shape, generator=source(seed + 1))
    return features.to(device), mask.to(device), labels.to(device)


def every(length):
    """All label sequences, (3^length, length)."""
    return torch.tensor(list(product(range(LABELS), repeat=length)), dtype=torch.long).view(LABELS**length, length)


def placed(labels, mask):
    """Labels (n, length) at the places of a mask of that length, 0 elsewhere."""
    y = torch.zeros(len(labels), len(mask), dtype=torch.long, device=mask.device)
    y[:, mask] = labels
    return y


def potential(head, features, labels):
    """u(y_1..y_T) of one sentence without holes, by a loop that is the definition; normalised or not, as the head has it."""
    total, memory = torch.zeros((), dtype=features.dtype, device=features.device), labels.new_full((1,), head.labels)
    for t, label in enumerate(labels.tolist()):
        h, _ = head.prediction.recurrent(head.prediction.embedding(memory[None]))
        f, g = head.transcription(features[t]), head.prediction.readout(h[0, -1])
        if isinstance(head, RNNTransducer):
            total = total + ((f + g).exp() / (f + g).exp().sum()).log()[label]
        elif isinstance(head.design, Sum):
            total = total + f[label] + g[label]
        else:
            total = total + (f.exp() / f.exp().sum()).log()[label] + (g.exp() / g.exp().sum()).log()[label]
        memory = torch.cat((memory, labels[t : t + 1]))
    return total
