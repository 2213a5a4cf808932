"""Encoders of Hugging Face: the mask has a hole for each further piece of a word, and the heads don't see them."""

import pytest
import torch

from gibbsite.apps.tagging import Adam, NeuralCRF, NeuralCRFTransducer, Pretrained, Sentence
from gibbsite.apps.tagging.hugging_face import HuggingFace
from gibbsite.apps.tagging.neural import NeuralTagger
from gibbsite.apps.tagging.tagger import load
from gibbsite.exact import LinearChain

from .test_neural import TRAIN

PIECES = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "a", "b", "c", "##b", "##c"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT of 2 layers and 8 components, and a tokenizer that parts bb and ccc into letters."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = models.WordPiece({piece: k for k, piece in enumerate(PIECES)}, unk_token="[UNK]")
    tokenizer = Tokenizer(words)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    path = tmp_path_factory.mktemp("bert")
    special = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(path)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    with torch.random.fork_rng():
        BertModel(BertConfig(vocab_size=len(PIECES), max_position_embeddings=40, **sizes)).save_pretrained(path)
    return str(path)


def test_the_first_piece_of_each_word_has_its_label(folder):
    batch = HuggingFace.load(folder).read([("bb", "a", "ccc"), ("a",)])
    assert batch["mask"].int().tolist() == [[0, 1, 0, 1, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0]]
    assert batch["attended"].sum(1).tolist() == [8, 3]


def test_words_without_pieces_are_unknown_and_have_their_place(folder):
    batch = HuggingFace.load(folder).read([("a", "\u3000", "a")])
    assert batch["mask"].sum() == 3


def test_sentences_that_are_too_long_are_an_error(folder):
    with pytest.raises(ValueError, match="at most 40 pieces, got 52; split"):
        HuggingFace.load(folder).read([("a",) * 50])


def test_the_crf_has_the_probability_of_a_chain_of_the_words_alone(folder, device):
    encoder = HuggingFace.load(folder)
    head = NeuralCRF().head(encoder.size, 4, torch.Generator().manual_seed(0))
    tagger = NeuralTagger(TRAIN.alphabet(), encoder, head).to(device)
    for parameter in head.parameters():
        parameter.data.normal_(generator=torch.Generator(device).manual_seed(0))
    sentence = Sentence(("bb", "a", "ccc"), ("Y", "A", "C"))
    batch = {name: x.to(device) for name, x in encoder.read([sentence.words]).items()}
    nodes = head.readout(encoder(batch))[0][batch["mask"][0]]
    chain = LinearChain(nodes, head.edge, start=head.start, end=head.end)
    labels = torch.tensor(tagger.labels.encode(sentence.labels), device=device)
    with torch.no_grad():
        assert abs(tagger.log_likelihood([sentence])[0] - chain(labels).item()) < 1e-5
        wrong = LinearChain(head.readout(encoder(batch))[0], head.edge, start=head.start, end=head.end)
        every_place = torch.zeros(8, dtype=torch.long, device=device)
        every_place[batch["mask"][0]] = labels
        assert abs(wrong(every_place).item() - chain(labels).item()) > 1e-2, "the mutant: holes have labels"


@pytest.mark.parametrize("learner", [NeuralCRF, NeuralCRFTransducer])
def test_it_learns_and_is_written_and_read(learner, folder, tmp_path, device):
    settings = {"reading": Pretrained(folder), "optimiser": Adam(0.01), "epochs": 25, "tokens": 32}
    if learner is NeuralCRFTransducer:
        settings |= {"first_epochs": 15, "width": 3}
    tagger = learner(**settings).fit(TRAIN, TRAIN, seed=0, device=str(device))
    found = tagger.predict(TRAIN.sentences)
    assert sum(f == s.labels for f, s in zip(found, TRAIN)) > len(TRAIN) / 2
    tagger.save(tmp_path / "tagger.safetensors")
    again = load(tmp_path / "tagger.safetensors", [NeuralTagger]).to(device)
    assert again.log_likelihood(TRAIN.sentences) == tagger.log_likelihood(TRAIN.sentences)
