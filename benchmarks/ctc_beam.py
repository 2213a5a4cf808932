"""# How many frames a second does CTC prefix beam search decode, beside fast-ctc-decode?

Four utterances of 500 frames and 30 columns: noise, and labels that last for three of eight frames. Nothing is pruned but by
the width of the beam, and a step is a frame. fast-ctc-decode is written in Rust. Ours is also run with a trigram model of
the labels, which the other does not take.
"""

import numpy as np
import torch
from _harness import Contest, Contestant, Target, main
from fast_ctc_decode import beam_search

import gibbsite as gb

BATCH, FRAMES, COLUMNS = 4, 500, 30
ALPHABET = [chr(ord("a") + number) for number in range(COLUMNS)]


def emissions() -> torch.Tensor:
    source = torch.Generator().manual_seed(0)
    said = torch.zeros(BATCH, FRAMES, dtype=torch.long)
    for begin in range(0, FRAMES, 8):
        said[:, begin : begin + 3] = torch.randint(1, COLUMNS, (BATCH, 1), generator=source)
    noise = 2 * torch.randn(BATCH, FRAMES, COLUMNS, generator=source)
    return (noise + 5 * torch.nn.functional.one_hot(said, COLUMNS)).log_softmax(-1)


def trigrams() -> gb.distributions.NGram:
    source, space = torch.Generator().manual_seed(1), gb.Tokens(40, COLUMNS, 0)
    x = torch.randint(COLUMNS, (3000, 40), generator=source)
    return gb.distributions.kneser_ney(torch.where((x == 0).cumsum(1) > 0, 0, x), space, order=3)


def contest(log_probs: torch.Tensor, model: gb.distributions.NGram, beam: int) -> Contest:
    lengths, search = torch.full((BATCH,), FRAMES), gb.exact.prefix_beam_search
    p = log_probs.exp().numpy().astype(np.float32)

    def rust() -> list[str]:
        return [beam_search(rows, ALPHABET, beam_size=beam, beam_cut_threshold=0.0)[0] for rows in p]

    ours = ["".join(ALPHABET[label] for label in best.labels) for (best,) in search(log_probs, lengths, beam=beam)]
    return Contest(
        f"A beam of {beam}",
        [
            Contestant("gibbsite", lambda: search(log_probs, lengths, beam=beam), BATCH * FRAMES),
            Contestant(
                "gibbsite, with trigrams",
                lambda: search(log_probs, lengths, beam=beam, language_model=model),
                BATCH * FRAMES,
            ),
            Contestant("fast-ctc-decode", rust, BATCH * FRAMES),
        ],
        [Target("gibbsite", "fast-ctc-decode", 1.0)],
        note=f"{sum(a == b for a, b in zip(ours, rust()))} of {BATCH} sequences are those of fast-ctc-decode.",
    )


def contests() -> list[Contest]:
    log_probs, model = emissions(), trigrams()
    return [contest(log_probs, model, beam) for beam in (5, 20, 100)]


if __name__ == "__main__":
    main(__file__, contests)
