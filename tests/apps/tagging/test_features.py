"""The feature CRF: its compiled pass against the same steps by autograd, its law against enumeration, real corpora."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch

import gibbsite as gb
from gibbsite.apps.tagging import Corpus, FeatureCRF, FeatureTagger, Hypothesis, Labels, Sentence, Templates
from gibbsite.apps.tagging.tagger import load
from gibbsite.learn import CheckpointError

TEMPLATES = ("word[0]", "suffix1[0]", "word[-1]")
TRAIN = Corpus(
    (
        Sentence(("the", "dog", "runs"), ("D", "N", "V")),
        Sentence(("dog",), ("N",)),
        Sentence(()),
        Sentence(("runs", "the", "dog", "the"), ("V", "D", "N", "D")),
    )
)
NEW = [Sentence(("the", "cat", "runs")), Sentence(()), Sentence(("dogs", "run"))]


class Slow:
    """The definition: features as texts, log p by LinearChain and autograd, AdaGrad one word after the other."""

    def __init__(self, corpus, l1, l2, rate):
        self.labels, self.l1, self.l2, self.rate = corpus.alphabet(), l1, l2, rate
        self.sentences = [s for s in corpus if s.words]
        K = len(self.labels)
        self.counts, self.w, self.squares = {}, {}, {}
        for sentence in self.sentences:
            for feature in (f for t in range(len(sentence)) for f in self.features(sentence, t)):
                self.counts[feature] = self.counts.get(feature, 0) + 1
                self.w[feature], self.squares[feature] = torch.zeros(K).double(), torch.zeros(K).double()
        self.dense = torch.zeros(K * K + 2 * K).double()
        self.dense_squares = torch.zeros_like(self.dense)

    @staticmethod
    def features(sentence, t):
        before = sentence.words[t - 1] if t else "beyond"
        return ("word", sentence.words[t]), ("suffix1", sentence.words[t][-1:]), ("word-1", before)

    def chain(self, node, dense):
        K = len(self.labels)
        edge, start, end = dense.split((K * K, K, K))
        return gb.exact.LinearChain(node, edge.view(K, K), start=start, end=end)

    def node(self, sentence):
        return torch.stack([sum(self.w[f] for f in self.features(sentence, t)) for t in range(len(sentence))])

    def step(self, w, squares, gradient, share):
        gradient = gradient + self.l2 * share * w
        squares += gradient**2
        step = self.rate / (squares.sqrt() + 1e-6)
        w -= step * gradient
        w.copy_(w.sign() * (w.abs() - step * self.l1 * share).clamp(min=0))

    def learn(self, order):
        total = 0.0
        for sentence in (self.sentences[s] for s in order):
            node, dense = self.node(sentence).requires_grad_(), self.dense.clone().requires_grad_()
            loss = -self.chain(node, dense)(torch.tensor(self.labels.encode(sentence.labels)))
            loss.backward()
            total += float(loss.detach())
            for t in range(len(sentence)):
                for feature in self.features(sentence, t):
                    self.step(self.w[feature], self.squares[feature], node.grad[t], 1 / self.counts[feature])
            self.step(self.dense, self.dense_squares, dense.grad, 1 / len(self.sentences))
        return total


def fast(corpus, passes, **settings):
    """(loss of the last pass, scores of all words, dense weights), by the compiled loop, in a fixed order."""
    tagger, state, learn = FeatureCRF(templates=TEMPLATES, **settings)._prepared(corpus)
    loss = [learn(np.array(order)) * len(order) for order in passes][-1]
    tagger.weights.copy_(torch.from_numpy(state.weights[:, 0]))
    return loss, torch.from_numpy(tagger._scores([s for s in corpus if s.words])), torch.from_numpy(state.dense)


PASSES = [(0, 1, 2), (2, 0, 1), (1, 2, 0)]


def gap(l1, l2, mutate=lambda slow: None):
    slow = Slow(TRAIN, l1, l2, rate=0.3)
    mutate(slow)
    loss = [slow.learn(order) for order in PASSES][-1]
    own_loss, scores, dense = fast(TRAIN, PASSES, l1=l1, l2=l2, rate=0.3)
    nodes = torch.cat([slow.node(sentence) for sentence in slow.sentences])
    return max(abs(loss - own_loss), float((nodes - scores).abs().max()), float((slow.dense - dense).abs().max()))


ROUNDING = 2e-4  # float32: nine sentences in turn, each at most doubling an error that starts below 2^-22


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.0, 2.0), (0.1, 0.0), (0.05, 1.0)])
def test_a_pass_is_adagrad_on_the_gradient_of_log_p(l1, l2):
    assert gap(l1, l2) < ROUNDING


def test_a_penalty_that_is_not_shared_fails():
    def whole(slow):
        slow.counts = dict.fromkeys(slow.counts, 1)

    assert gap(0.0, 2.0, whole) > 10 * ROUNDING


def test_an_objective_without_edges_fails():
    def without(slow):
        slow.chain = lambda node, dense: gb.exact.LinearChain(node, 0 * dense[:9].view(3, 3))

    assert gap(0.0, 0.0, without) > 10 * ROUNDING


@pytest.fixture(scope="module")
def tagger():
    return FeatureCRF(templates=TEMPLATES, epochs=20).fit(TRAIN, seed=0)


def law(tagger, sentence):
    """p of every labelling, by enumeration of the sum that the class's equation says."""
    names = tagger.labels.names
    node = torch.from_numpy(tagger._scores([sentence])).double()
    found = {}
    for y in product(range(len(names)), repeat=len(sentence)):
        u = sum(float(node[t, k]) for t, k in enumerate(y)) + float(tagger.start[y[0]] + tagger.end[y[-1]])
        u += sum(float(tagger.edge[a, b]) for a, b in pairwise(y))
        found[tuple(names[k] for k in y)] = u
    log_z = float(torch.tensor(list(found.values())).double().logsumexp(0))
    return {y: u - log_z for y, u in found.items()}


def test_predictions_are_those_of_the_enumerated_law(tagger, device):
    tagger = load_again(tagger).to(device)
    labels, marginals, best = tagger.predict(NEW), tagger.predict_marginals(NEW), tagger.n_best(NEW, 5)
    assert labels[1] == () and marginals[1].shape == (0, 3) and best[1] == [Hypothesis((), 0.0)]
    for number in (0, 2):
        every = law(tagger.cpu(), NEW[number])
        ranked = sorted(every, key=every.get, reverse=True)
        assert labels[number] == ranked[0]
        assert [h.labels for h in best[number]] == ranked[:5]
        assert [h.log_probability for h in best[number]] == pytest.approx([every[y] for y in ranked[:5]], abs=1e-4)
        for k, name in enumerate(tagger.labels.names):
            p = [sum(np.exp(u) for y, u in every.items() if y[t] == name) for t in range(len(NEW[number]))]
            assert marginals[number][:, k].tolist() == pytest.approx(p, abs=1e-5)
        one = Sentence(NEW[number].words, ranked[1])
        assert tagger.log_likelihood([one, Sentence(())]) == pytest.approx([every[ranked[1]], 0.0], abs=1e-4)


def test_evaluate_is_of_the_enumerated_law(tagger):
    right = Corpus((Sentence(("the", "cat", "runs"), ("D", "V", "N")), Sentence(()), Sentence(("dogs", "run"), ("N", "X"))))
    found = gb.apps.tagging.evaluate(tagger, right)
    guess = [law(tagger, s) for s in right if s.words]
    best = [max(every, key=every.get) for every in guess]
    hits = [g == b for s, labels in zip([s for s in right if s.words], best) for g, b in zip(s.labels, labels)]
    assert found.accuracy == sum(hits) / 5 and found.unknown == 1 and (found.sentences, found.tokens) == (3, 5)
    assert found.nats == pytest.approx(-guess[0]["D", "V", "N"] / 3, abs=1e-4) and found.spans is None
    p = torch.cat(tagger.predict_marginals(right.sentences))[:4]
    assert found.calibration == gb.diagnose.calibration_error(p, torch.tensor([0, 2, 1, 1]))
    with pytest.raises(ValueError, match="got none; is it the right column"):
        gb.apps.tagging.evaluate(tagger, Corpus((Sentence(("a",), ("X",)),)))


def load_again(tagger):
    again = FeatureTagger.restored(tagger.settings())
    again.load_state_dict(tagger.state_dict())
    return again


def test_it_learns_and_is_the_same_for_the_same_seed(tagger):
    assert tagger.predict(TRAIN.sentences) == TRAIN.labels
    again = FeatureCRF(templates=TEMPLATES, epochs=20).fit(TRAIN, seed=0)
    assert torch.equal(tagger.weights, again.weights) and torch.equal(tagger.edge, again.edge)
    assert not torch.equal(tagger.weights, FeatureCRF(templates=TEMPLATES, epochs=20).fit(TRAIN, seed=1).weights)


def test_dev_chooses_the_pass(tmp_path):
    wrong = Corpus((Sentence(("the", "dog", "runs"), ("N", "D", "D")),))
    told = []
    kept = FeatureCRF(templates=TEMPLATES, epochs=4, rate=1.0).fit(
        TRAIN, wrong, seed=0, out=tmp_path / "run", progress=lambda done, of: told.append((done, of))
    )
    rows = gb.files.read_lines(tmp_path / "run" / "metrics.jsonl")
    scores = [row["dev"] for row in rows]
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)] and [row["epoch"] for row in rows] == [1, 2, 3, 4]
    assert gb.apps.tagging.accuracy(wrong.labels, kept.predict(wrong.sentences)) == max(scores)


def test_l1_drops_features_and_rare_ones_can_be_left_out():
    def size(**settings):
        return len(FeatureCRF(templates=TEMPLATES, **settings).fit(TRAIN, seed=0).keys)

    assert size(l1=5.0) < size() and size(least=2) < size()


def test_other_weights_and_features_are_read_at_once(tagger):
    """What is kept between calls is made anew when another tagger's weights are loaded."""
    other = FeatureCRF(templates=TEMPLATES).fit(Corpus(TRAIN.sentences[:2]), seed=0)
    empty = FeatureTagger(other.labels, other.templates, len(other.keys))
    empty.predict(NEW)
    empty.load_state_dict(other.state_dict())
    assert empty.n_best(NEW, 3) == other.n_best(NEW, 3)


def test_saved_and_loaded(tagger, tmp_path):
    tagger.save(tmp_path / "tagger.safetensors")
    again = load(tmp_path / "tagger.safetensors", (FeatureTagger,))
    assert again.n_best(NEW, 3) == tagger.n_best(NEW, 3) and again.templates == tagger.templates
    content = bytearray((tmp_path / "tagger.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "tagger.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match="changed since it was written"):
        load(tmp_path / "tagger.safetensors", (FeatureTagger,))


def test_a_file_of_another_kind_is_named(tagger, tmp_path):
    tagger.save(tmp_path / "tagger.safetensors")
    with pytest.raises(CheckpointError, match="expected a tagger of , got FeatureTagger"):
        load(tmp_path / "tagger.safetensors", ())


def test_mistakes_are_named(tagger):
    with pytest.raises(ValueError, match="expected at least one word, got none"):
        FeatureCRF().fit(Corpus((Sentence(()),)), seed=0)
    with pytest.raises(ValueError, match="expected at least 2 labels, got A alone"):
        FeatureCRF().fit(Corpus((Sentence(("a",), ("A",)),)), seed=0)
    with pytest.raises(FloatingPointError, match="take less"):
        FeatureCRF(rate=1e300).fit(TRAIN, seed=0)
    with pytest.raises(ValueError, match="label 'X' is none of the 3 labels D, N, V"):
        tagger.log_likelihood([Sentence(("a",), ("X",))])
    with pytest.raises(ValueError, match="expected a label for each word, got none in sentence 0"):
        tagger.log_likelihood([Sentence(("a",))])
    for settings, said in (({"l2": -1}, "l2"), ({"rate": 0}, "rate"), ({"epochs": 0}, "epochs"), ({"least": 0}, "least")):
        with pytest.raises(ValueError, match=f"{said}: expected"):
            FeatureCRF(**settings)


def test_without_features_in_common_it_still_has_a_law(tagger):
    strange = [Sentence(("漢", "字"))]
    assert tagger.predict_marginals(strange)[0].sum(-1).tolist() == pytest.approx([1, 1], abs=1e-5)
    none = FeatureTagger(Labels(("A", "B")), Templates(), 0)
    assert none.predict_marginals(strange)[0].flatten().tolist() == pytest.approx([0.5] * 4)


def test_on_a_real_treebank_it_beats_the_most_frequent_label_of_each_word(data):
    """2,001 sentences to learn from, 2,077 to score: the baseline that any tagger must beat."""
    train, test = (Corpus.read(data / f"tagging/ud_ewt/en_ewt-ud-{part}.conllu.gz") for part in ("dev", "test"))
    counts = {}
    for sentence in train:
        for word, label in zip(sentence.words, sentence.labels):
            seen = counts.setdefault(word, {})
            seen[label] = seen.get(label, 0) + 1
    frequent = {word: max(seen, key=seen.get) for word, seen in counts.items()}
    baseline = [[frequent.get(word, "NOUN") for word in sentence.words] for sentence in test]
    accuracy = gb.apps.tagging.accuracy
    found = FeatureCRF(epochs=2).fit(train, seed=0).predict(test.sentences)
    assert accuracy(test.labels, found) > accuracy(test.labels, baseline) + 0.05
