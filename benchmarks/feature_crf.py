"""A linear-chain CRF on sparse features of words, beside python-crfsuite: how right, in how much CPU time and memory?

Parts of speech (UPOS) of UD English-EWT and entities of WNUT-17, as they come: train, dev and test. A run is a process of
its own on one thread, pinned to one CPU: it reads the corpora, makes features, trains, tags the test sentences from their
words. Contestants take turns, gibbsite with a new seed in each round; crfsuite draws nothing, and its run that takes minutes
is made once. CPU seconds are of the process, features included; what is compiled on first use is timed by itself. The time
of gibbsite has its passes over dev, by which it chooses the pass to keep; crfsuite has no use for dev. Memory is the peak of
the process less what it held when the corpora were read.

python-crfsuite runs with the templates and settings of its own tutorial (L-BFGS, l1 1.0, l2 0.001, 50 iterations,
all transitions; the tutorial's part-of-speech features are left out, for there are none), and with the same settings and
gibbsite's templates written out as texts.
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

from _harness import _ONE_THREAD, heading, machine, table, write

SETS = {
    "UD EWT, UPOS": ("tagging/ud_ewt/en_ewt-ud-{}.conllu.gz", ("train-reassembled", "dev", "test"), "upos"),
    "WNUT-17": ("tagging/wnut17/{}", ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"), "ner"),
}
OURS = "gibbsite"
_TUTORIAL = {"c1": 1.0, "c2": 1e-3, "max_iterations": 50, "feature.possible_transitions": True}
PEERS = {
    "crfsuite, tutorial": "tutorial",
    "crfsuite, gibbsite's templates": "ours",
}
ROUNDS = {OURS: 3, "crfsuite, tutorial": 3}  # the other, which takes minutes, runs once
_PART = re.compile(r"([a-z]+)(\d?)\[([+-]?\d+)\]")


def tutorial(words, t):
    """The features of python-crfsuite's tutorial (examples/CoNLL 2002.ipynb) but for its part-of-speech columns."""
    word = words[t]
    found = ["bias", f"word.lower={word.lower()}", f"word[-3:]={word[-3:]}", f"word[-2:]={word[-2:]}"]
    found += [f"word.isupper={word.isupper()}", f"word.istitle={word.istitle()}", f"word.isdigit={word.isdigit()}"]
    for name, place, beyond in (("-1", t - 1, "BOS"), ("+1", t + 1, "EOS")):
        if 0 <= place < len(words):
            near = words[place]
            found += [f"{name}:word.lower={near.lower()}", f"{name}:word.istitle={near.istitle()}"]
            found.append(f"{name}:word.isupper={near.isupper()}")
        else:
            found.append(beyond)
    return found


def pattern(word):
    """X for capital letters, x for others, d for digits."""
    return "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word)


LOOKS = {
    "word": lambda w, n: w,
    "lower": lambda w, n: w.lower(),
    "pattern": lambda w, n: pattern(w),
    "shape": lambda w, n: re.sub(r"(.)\1+", r"\1", pattern(w)),
    "prefix": lambda w, n: w.lower()[:n] if len(w) >= n else "",
    "suffix": lambda w, n: w.lower()[-n:] if len(w) >= n else "",
}


def ours(words, t, templates):
    """gibbsite's templates as texts."""
    found = []
    for number, parts in enumerate(templates):
        texts = [
            LOOKS[look](words[t + d], size) if 0 <= t + d < len(words) else f"<{t + d if t + d < 0 else t + d - len(words)}>"
            for look, size, d in parts
        ]
        found.append(f"{number}={'|'.join(texts)}")
    return found


def corpora(name):
    """Train, dev, test and the column of a set."""
    from gibbsite.apps.tagging import Corpus

    pattern, splits, column = SETS[name]
    root = Path(os.environ["GIBBSITE_DATA"])
    return [Corpus.read(root / pattern.format(split), column) for split in splits]


def run_ours(train, dev, test, seed):
    """Trains and tags; (labels, seconds to train, seconds to tag, features that were kept)."""
    from gibbsite.apps.tagging import Corpus, FeatureCRF, Sentence

    tiny = Corpus((Sentence(("a", "b"), ("A", "B")), Sentence(("b",), ("B",))))
    began = time.process_time()
    FeatureCRF(epochs=1).fit(tiny, tiny, seed=0).predict(tiny.sentences)
    compiled = time.process_time() - began
    before, began = peak(), time.process_time()
    tagger = FeatureCRF().fit(train, dev, seed=seed)
    trained = time.process_time()
    labels = tagger.predict(test.sentences)
    done = time.process_time()
    return labels, {"train": trained - began, "tag": done - trained, "compile": compiled, "memory": peak() - before}


def run_peer(which, train, test):
    """The same by python-crfsuite."""
    import pycrfsuite

    from gibbsite.apps.tagging import USUAL

    parsed = [[(look, int(n or 0), int(d)) for look, n, d in _PART.findall(text)] for text in USUAL]
    features = tutorial if PEERS[which] == "tutorial" else lambda words, t: ours(words, t, parsed)
    before, began = peak(), time.process_time()
    trainer = pycrfsuite.Trainer(verbose=False)
    for sentence in train:
        trainer.append([features(sentence.words, t) for t in range(len(sentence))], sentence.labels)
    trainer.set_params(_TUTORIAL)
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/model")
        trained = time.process_time()
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{folder}/model")
        labels = [tuple(tagger.tag([features(s.words, t) for t in range(len(s))])) for s in test]
        done = time.process_time()
    return labels, {"train": trained - began, "tag": done - trained, "memory": peak() - before}


def peak():
    """The most memory that the process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def contest(name, which, seed):
    """What one process finds."""
    from gibbsite.apps.tagging import accuracy, span_score

    train, dev, test = corpora(name)
    labels, found = run_ours(train, dev, test, seed) if which == OURS else run_peer(which, train, test)
    found["accuracy"] = accuracy(test.labels, labels)
    if SETS[name][2] == "ner":
        found["f1"] = span_score(test.labels, labels).f1
    return found


def child(cpu, name, which, seed, cache=None):
    """The same in a process of its own, on one thread."""
    environment = {**os.environ, **_ONE_THREAD, **({"NUMBA_CACHE_DIR": cache} if cache else {})}
    pin = ["taskset", "--cpu-list", str(cpu)] if shutil.which("taskset") else []
    words = [*pin, sys.executable, __file__, "--child", json.dumps([name, which, seed])]
    answer = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout.splitlines()[-1])


def page(record):
    """The record as Markdown."""
    about = (
        f"python-crfsuite {metadata.version('python-crfsuite')}. {max(ROUNDS.values())} rounds; medians, and the extremes"
    )
    parts = [heading(record), f"\n{about} in brackets. Load average when it started: {record['load']:.2f}.\n"]
    for name, runs in record["runs"].items():
        score = "f1" if "f1" in runs[OURS][0] else "accuracy"
        label = "F1 of spans" if score == "f1" else "accuracy"
        rows = []
        for which, found in runs.items():
            total = [(p["train"] + p["tag"]) / (o["train"] + o["tag"]) for p, o in zip(found, runs[OURS])]
            rows.append([
                which, spread([100 * f[score] for f in found], 2), spread([f["train"] for f in found], 2),
                spread([f["tag"] for f in found], 2), spread([f["memory"] for f in found], 0),
                "" if which == OURS else spread(total, 2),
            ])  # fmt: skip
        columns = ["", f"test {label}, %", "CPU s to train", "CPU s to tag", "MB", "its CPU time / gibbsite's"]
        parts.append(f"\n## {name}\n\n{table(columns, rows)}")
    parts.append(
        f"\nThe compiled loops are kept on the disk: the first training ever on a machine takes {record['compile']:.0f} CPU "
        "seconds more than these, once.\n"
    )
    return "".join(parts)


def spread(values, digits):
    """The median and, where they differ, the extremes."""
    low, middle, high = (f"{v:.{digits}f}" for v in (min(values), statistics.median(values), max(values)))
    return middle if low == high else f"{middle} ({low}-{high})"


def main():
    """Runs all contests, or one as a child."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--child", help="used by the script itself")
    arguments.add_argument("--cpu", type=int, default=0, help="the CPU that all runs are pinned to")
    given = arguments.parse_args()
    if given.child:
        print(json.dumps(contest(*json.loads(given.child))))
        return
    record = {"question": __doc__, "machine": machine(), "load": os.getloadavg()[0], "runs": {}}
    with tempfile.TemporaryDirectory() as cache:
        record["compile"] = child(given.cpu, "WNUT-17", OURS, 0, cache)["compile"]
    for name in SETS:
        runs = {which: [] for which in (OURS, *PEERS)}
        for turn in range(max(ROUNDS.values())):
            for which in [which for which in runs if turn < ROUNDS.get(which, 1)]:
                runs[which].append(child(given.cpu, name, which, turn))
                print(name, which, runs[which][-1], file=sys.stderr, flush=True)
        record["runs"][name] = runs
    write("feature_crf", record, page(record))


if __name__ == "__main__":
    main()
