"""Neural taggers: what they answer, that they learn, go on after a stop, and are written and read."""

import signal

import pytest
import torch

from gibbsite.apps.tagging import (
    SGD,
    Adam,
    Corpus,
    CorpusError,
    NeuralCRF,
    NeuralCRFTransducer,
    NeuralRNNTransducer,
    NeuralSoftmax,
    Sentence,
    Words,
    accuracy,
    evaluate,
    span_score,
)
from gibbsite.apps.tagging.batches import Bucketed, by_length
from gibbsite.apps.tagging.choice import score
from gibbsite.apps.tagging.heads import Separate
from gibbsite.apps.tagging.neural import NeuralTagger
from gibbsite.apps.tagging.tagger import load
from gibbsite.apps.tagging.vocabulary import Vocabulary
from gibbsite.apps.tagging.word_encoder import WordEncoder
from gibbsite.files import read_lines

SMALL = {"reading": Words(word_size=8, filters=4, hidden=8, dropout=0.1), "tokens": 32, "epochs": 3}
LEARNERS = {
    "softmax": NeuralSoftmax(**SMALL),
    "crf": NeuralCRF(**SMALL),
    "rnn-t": NeuralRNNTransducer(**SMALL, label_hidden=4, width=3),
    "crf-t": NeuralCRFTransducer(**SMALL, design=Separate(), label_hidden=4, width=3, first_epochs=2),
}
by_learner = pytest.mark.parametrize("name", LEARNERS)


def corpus(count, seed):
    """Words aaa or bb or Cc; b is X behind an a, else Y: labels that depend on the words around."""
    draws = torch.Generator().manual_seed(seed)
    sentences = []
    for _ in range(count):
        length = int(torch.randint(1, 9, (), generator=draws))
        words = ["abc"[k] * (k + 1) for k in torch.randint(3, (length,), generator=draws).tolist()]
        labels = ["A" if w == "a" else "C" if w == "ccc" else "X" if v == "a" else "Y" for v, w in zip(["", *words], words)]
        sentences.append(Sentence(tuple(words), tuple(labels)))
    return Corpus(tuple(sentences))


TRAIN, DEV = corpus(60, 0), corpus(30, 1)


@by_learner
def test_a_tagger_learns_what_depends_on_the_words_around(name, device):
    settings = {**vars(LEARNERS[name]), "epochs": 30, "optimiser": Adam(0.02)}
    tagger = type(LEARNERS[name])(**settings).fit(TRAIN, DEV, seed=0, device=str(device))
    scores = evaluate(tagger, DEV)
    assert scores.accuracy == 1.0  # the labels are a function of the words, so that there is no doubt to leave


@by_learner
def test_answers_agree_with_each_other(name, device):
    tagger = LEARNERS[name].fit(TRAIN, seed=0, device=str(device))
    sentences = [*DEV, Sentence(()), Sentence(("zzz" * 40, "a"))]
    best = tagger.n_best(sentences, 3)
    assert tagger.predict(sentences) == [hypotheses[0].labels for hypotheses in best]
    assert best[len(DEV)] == [((), 0.0)] and tagger.predict(sentences)[len(DEV)] == ()
    for sentence, marginals, hypotheses in zip(sentences, tagger.predict_marginals(sentences), best):
        assert marginals.shape == (len(sentence), len(tagger.labels))
        assert torch.allclose(marginals.sum(-1), torch.ones(len(sentence)), atol=1e-5)
        assert len({h.labels for h in hypotheses}) == len(hypotheses)
    given = [Sentence(s.words, hypotheses[0].labels) for s, hypotheses in zip(sentences, best)]
    first = torch.tensor([hypotheses[0].log_probability for hypotheses in best])
    assert torch.allclose(torch.tensor(tagger.log_likelihood(given)), first, atol=1e-4)


@by_learner
def test_batches_and_padding_change_nothing(name, device):
    tagger = LEARNERS[name].fit(TRAIN, seed=0, device=str(device)).double()
    alone = [tagger.log_likelihood([sentence])[0] for sentence in DEV]
    assert torch.allclose(torch.tensor(alone), torch.tensor(tagger.log_likelihood(DEV.sentences)), atol=1e-10)


@by_learner
def test_a_tagger_is_written_and_read(name, tmp_path, device):
    tagger = LEARNERS[name].fit(TRAIN, seed=0, device=str(device))
    tagger.save(tmp_path / "tagger.safetensors")
    again = load(tmp_path / "tagger.safetensors", [NeuralTagger]).to(device)
    assert again.log_likelihood(DEV.sentences) == tagger.log_likelihood(DEV.sentences)
    assert again.settings() == tagger.settings()


class Stop(Exception):
    pass


@pytest.mark.parametrize("name", ["crf", "crf-t"])
def test_a_stopped_training_goes_on_to_the_same_bits(name, tmp_path):
    learner = LEARNERS[name]

    def stop(done, of):
        if done == 2:
            raise Stop

    whole = learner.fit(TRAIN, DEV, seed=0, out=tmp_path / "whole")
    with pytest.raises(Stop):
        learner.fit(TRAIN, DEV, seed=0, out=tmp_path / "stopped", progress=stop)
    again = learner.fit(TRAIN, DEV, seed=0, out=tmp_path / "stopped")
    assert all(torch.equal(a, b) for a, b in zip(whole.state_dict().values(), again.state_dict().values()))
    assert (tmp_path / "whole/metrics.jsonl").read_text() == (tmp_path / "stopped/metrics.jsonl").read_text()
    other = learner.fit(TRAIN, DEV, seed=1)
    assert not torch.equal(next(whole.parameters()), next(other.parameters())), "the mutant: another seed"


def test_passes_are_told_over_both_stages_and_ctrl_c_ends_both(tmp_path):
    learner, told = LEARNERS["crf-t"], []
    learner.fit(TRAIN, seed=0, progress=lambda done, of: told.append((done, of)))
    assert {of for _, of in told} == {5} and sorted({done for done, _ in told}) == [0, 1, 2, 3, 4, 5]
    assert told == sorted(told)

    def press(done, of):
        if done == 1:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        learner.fit(TRAIN, seed=0, out=tmp_path, progress=press)
    assert (tmp_path / "first" / "checkpoint").exists() and not (tmp_path / "checkpoint").exists()


def test_the_epoch_that_is_best_on_dev_is_kept(tmp_path):
    learner = NeuralSoftmax(**{**SMALL, "epochs": 8, "window": 0.0, "optimiser": SGD(1.0)})
    tagger = learner.fit(TRAIN, DEV, seed=0, out=tmp_path)
    epochs = [line for line in read_lines(tmp_path / "metrics.jsonl") if "epoch" in line]
    assert len(epochs) == 8 and evaluate(tagger, DEV).accuracy == max(e["dev"] for e in epochs)


def test_batches_hold_every_sentence_once_and_few_places_too_many():
    lengths = [len(sentence) for sentence in TRAIN]
    groups = by_length(lengths, 32, seed=0)
    assert sorted(number for group in groups for number in group) == list(range(len(TRAIN)))
    assert all(len(group) * max(lengths[k] for k in group) <= 32 for group in groups)
    assert by_length(lengths, 32, seed=1) != groups


def test_data_are_the_same_rows_whenever_they_are_asked_for():
    source = torch.Generator().manual_seed(0)
    encoder = WordEncoder.of([s.words for s in TRAIN], source=source)
    labels = TRAIN.alphabet()
    data = Bucketed(encoder, [s.words for s in TRAIN], [labels.encode(s.labels) for s in TRAIN], tokens=32, seed=0)
    (batch,) = data.rows(torch.tensor([1]), source)
    assert batch["labels"].shape == batch["mask"].shape == batch["words"].shape
    assert len(data.rows(torch.arange(2), source)) == 2


def test_a_word_is_read_by_its_letters_where_it_is_not_known():
    vocabulary = Vocabulary.of([("The", "dog", "the")])
    assert vocabulary.words == ("the", "dog") and vocabulary.word("THE") == 2 and vocabulary.word("cat") == 1
    assert vocabulary.spelling("doT") == [2, *[4 + vocabulary.characters.index(c) for c in "doT"], 3]
    long = vocabulary.spelling("d" * 50 + "o")
    assert len(long) == 34 and long[-2] == 4 + vocabulary.characters.index("o")


def test_words_begin_with_the_vectors_of_a_file(tmp_path):
    (tmp_path / "vectors.txt").write_text("a 1 2\nzebra 3 4\n")
    encoder = WordEncoder.of([("a", "b")], vectors=tmp_path / "vectors.txt", source=torch.Generator().manual_seed(0))
    vector = {w: encoder.words.weight[encoder.vocabulary.word(w)].tolist() for w in ("a", "b", "Zebra")}
    assert vector["a"] == [1, 2] and vector["Zebra"] == [3, 4] and vector["b"] != [1, 2]
    (tmp_path / "vectors.txt").write_text("a 1 2\nzebra 3\n")
    with pytest.raises(CorpusError, match=r"line 2: expected a word and 2 numbers, got 'zebra 3"):
        WordEncoder.of([("a",)], vectors=tmp_path / "vectors.txt", source=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: NeuralCRF(epochs=0), "epochs: expected a positive integer, got 0"),
        (lambda: NeuralCRF(clip=0.0), "clip: expected a positive number, got 0.0"),
        (lambda: NeuralCRF(window=-1.0), "window: expected a non-negative number, got -1.0"),
        (lambda: NeuralCRF(reading=Adam()), "reading: expected a gibbsite.apps.tagging.Reading, got Adam"),
        (lambda: Adam(rate=0), "rate: expected a positive number, got 0"),
        (lambda: SGD(momentum=1), "momentum: expected a number at least 0 and below 1, got 1"),
        (
            lambda: NeuralCRF(reading=Words(dropout=1)).fit(TRAIN, seed=0),
            "dropout: expected a number at least 0 and below 1",
        ),
        (lambda: NeuralRNNTransducer(width=0).fit(TRAIN, seed=0), "width: expected a positive integer, got 0"),
        (lambda: NeuralCRF().fit(Corpus((Sentence(("a",), ("A",)),)), seed=0), "labels: expected an integer of at least 2"),
    ],
)
def test_mistakes_are_named(wrong, said):
    with pytest.raises((TypeError, ValueError), match=said):
        wrong()


def test_spans_are_chosen_by_their_f1(device):
    spans = Corpus(tuple(Sentence(w, tuple("B-X" if v == "a" else "I-X" if v == "bb" else "O" for v in w)) for w in
                         (sentence.words for sentence in TRAIN))).rewritten("bio")  # fmt: skip
    tagger = NeuralSoftmax(**{**SMALL, "epochs": 6}).fit(spans, seed=0, device=str(device))
    found = tagger.predict(spans.sentences)
    assert 0 < score(tagger, spans) < 1
    assert score(tagger, spans) == pytest.approx(span_score(spans.labels, found).f1, abs=1e-12)
    assert score(tagger, spans) != accuracy(spans.labels, found), "the mutant: the share of words"
