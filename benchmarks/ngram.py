"""# How fast are n-gram models estimated, scored and read, beside KenLM?

5-grams of the words of the King James Bible (lower case, punctuation marks apart), estimated on nine of ten verses; all
verses are scored, and a step is a token, ends of verses among them. KenLM's Python module takes verses as strings, and so
does ours in "words": both look words up. In "ids" that was done before. KenLM reads the file that we wrote, and keeps its
default, a hash table of float32; ours is float64. Its estimator is not part of the module, so that ours has no peer here.
The text is `text/kjv.txt.gz` in the folder that GIBBSITE_DATA names.
"""

import gzip
import os
import re
import resource
import tempfile
from pathlib import Path

import kenlm
import torch
from _harness import Contest, Contestant, Target, main

import gibbsite as gb

D, ORDER, CLASSES = gb.distributions, 5, 100


class Text:
    """Verses as words and as padded ids."""

    def __init__(self) -> None:
        text = gzip.decompress((Path(os.environ["GIBBSITE_DATA"]) / "text" / "kjv.txt.gz").read_bytes()).decode()
        lines = [line.split(" ", 1)[1].lower() for line in text.splitlines()]
        self.verses = [" ".join(re.findall(r"[a-z']+|[^\sa-z']", line)) for line in lines]
        self.words = ["</s>", "<unk>", *sorted({word for verse in self.verses for word in verse.split()})]
        self.ids = {word: number for number, word in enumerate(self.words)}
        longest = max(len(verse.split()) for verse in self.verses)
        self.space = gb.Tokens(longest + 1, len(self.words), 0)
        self.tokens = sum(len(verse.split()) + 1 for verse in self.verses)

    def encoded(self) -> torch.Tensor:
        """The verses as ids, looked up word by word."""
        x = torch.zeros(len(self.verses), self.space.length, dtype=torch.long)
        table = x.numpy()
        for row, verse in zip(table, self.verses):
            found = [self.ids[word] for word in verse.split()]
            row[: len(found)] = found
        return x


def size(model: D.NGram) -> int:
    """Bytes of all its tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in model.buffers())


def contests() -> list[Contest]:
    text = Text()
    x = text.encoded()
    held = torch.arange(len(x)) % 10 == 9
    model = D.kneser_ney(x[~held], text.space, order=ORDER)
    fitted = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/kjv.arpa"
        D.write_arpa(model, text.words, path)
        peer = kenlm.Model(path)
        log10 = torch.tensor([peer.score(verse) for verse in text.verses])
        apart = (log10.double() * torch.log(torch.tensor(10.0)) - model(x)).abs().max()
        return [scoring(text, x, model, peer, float(apart)), estimating(text, x, ~held, model, fitted)]


def scoring(text: Text, x: torch.Tensor, model: D.NGram, peer: kenlm.Model, apart: float) -> Contest:
    held = torch.arange(len(x)) % 10 == 9
    worlds = [D.perplexity(model, x[chosen]) for chosen in (~held, held)]
    return Contest(
        "Scores of all verses",
        [
            Contestant("gibbsite, words", lambda: model(text.encoded()), text.tokens),
            Contestant("gibbsite, ids", lambda: model(x), text.tokens),
            Contestant("KenLM, words", lambda: [peer.score(verse) for verse in text.verses], text.tokens),
        ],
        [Target("gibbsite, ids", "KenLM, words", 1.0)],
        note=f"{text.tokens:,} tokens, {len(text.words):,} words. "
        f"Log-probabilities of verses differ by {apart:.1g} at most. "
        f"Perplexity {worlds[0]:.2f} on the verses learned from, {worlds[1]:.2f} on the others.",
    )


def estimating(text: Text, x: torch.Tensor, learned: torch.Tensor, model: D.NGram, fitted: float) -> Contest:
    tokens = int((text.space.lengths(x[learned]) + 1).sum())
    return Contest(
        "Estimation on nine of ten verses",
        [
            Contestant("gibbsite, 5-grams", lambda: D.kneser_ney(x[learned], text.space, order=ORDER), tokens),
            Contestant("gibbsite, 3-grams", lambda: D.kneser_ney(x[learned], text.space, order=3), tokens),
            Contestant(
                f"gibbsite, {CLASSES} classes by exchange",
                lambda: D.word_classes(x[learned], text.space, classes=CLASSES),
                tokens,
            ),
        ],
        note=f"{tokens:,} tokens give {model.states:,} contexts and {len(model.log_p):,} 5-grams and shorter ones, "
        f"{size(model) / 2**20:.0f} MiB. The process held {fitted:.0f} MiB at most until then, torch and the text included.",
    )


if __name__ == "__main__":
    main(__file__, contests)
