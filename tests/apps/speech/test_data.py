"""Readers: what they read is what was written, real corpora have their known sizes, and each mistake is named."""

import io
import json
import re
import struct
import wave
import zipfile

import numpy as np
import pytest
import torch

from gibbsite.apps.speech import (
    Alphabet,
    Characters,
    Corpus,
    Pronounced,
    SpeechError,
    Utterance,
    Written,
    an4,
    fsdd,
    manifest,
)
from gibbsite.apps.speech.an4 import sphinx_cepstra, transcripts
from gibbsite.apps.speech.archive import members, unpack
from gibbsite.apps.speech.audio import read_wave
from gibbsite.apps.speech.manifest import utterances


def wav(values, rate=8000, width=2, channels=1):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((channels, width, rate, 0, "NONE", "not compressed"))
        out.writeframes(np.asarray(values, {1: "u1", 2: "<i2", 4: "<i4"}[width]).tobytes())
    return file.getvalue()


def sphinx(values):
    return struct.pack(">i", len(values)) + np.asarray(values, ">f4").tobytes()


def test_waves_of_every_width_and_of_two_channels():
    assert read_wave(wav([0, 16384, -32768]), "a")[0].tolist() == [0, 0.5, -1]
    assert read_wave(wav([128, 192, 0], width=1), "a")[0].tolist() == [0, 0.5, -1]
    assert read_wave(wav([1 << 30], width=4, rate=16000), "a") == (torch.tensor([0.5]), 16000)
    assert read_wave(wav([0, 16384, 16384, 16384], channels=2), "a")[0].tolist() == [0.25, 0.5]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"RIFF", "a.wav: cannot be read as a WAV file"),
        (wav([0] * 9)[:-4], "a.wav: expected 9 samples as its header says, got 7"),
        (wav([]), "a.wav: expected 1 samples"),
        (wav([0] * 9, rate=16000), "a.wav: expected 8000 samples a second, as in the other recordings, got 16000; resample"),
    ],
)
def test_broken_waves_are_named(content, words):
    with pytest.raises(SpeechError, match=words):
        read_wave(content, "a.wav", 8000)


def test_sphinx_cepstra_are_big_endian():
    values = torch.arange(26, dtype=torch.float32) / 3
    assert torch.equal(sphinx_cepstra(sphinx(values), "a"), values.reshape(2, 13))
    little = struct.pack("<i", 26) + values.numpy().astype("<f4").tobytes()
    for content in (little, sphinx(values)[:-4], sphinx(values[:20]), b"", struct.pack(">i", 0)):
        with pytest.raises(SpeechError, match=r"a\.mfc: expected a big-endian count"):
            sphinx_cepstra(content, "a.mfc")


def test_transcripts_of_sphinx():
    assert transcripts("GO ON (a-1)\n<s> YES </s> (b)\n", "t") == {"a-1": "GO ON", "b": "YES"}
    with pytest.raises(SpeechError, match=r"t, line 1: expected WORDS \(UTTERANCE\), got 'GO'"):
        transcripts("GO", "t")


def test_members_are_found_in_any_folder_and_packed_alike():
    decode, packed = members(re.compile(r"([^/]*\.wav)$")), set()
    for names in (("x/b.wav", "a.wav", "x/readme"), ("y/z/a.wav", "b.wav")):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as out:
            for name in names:
                out.writestr(name, name.rsplit("/", 1)[-1])
        packed.add(decode(file.getvalue()))
    (content,) = packed
    assert unpack(content) == {"a.wav": b"a.wav", "b.wav": b"b.wav"}
    with pytest.raises(ValueError, match="no zip file"):
        decode(b"no")


def test_an4_is_whole(data):
    corpus, phones = an4()
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (901, 47, 130)
    first = corpus.test[0]
    assert (first.name, first.text) == ("an406-fcaw-b", "RUBOUT G M E F THREE NINE") and first.features.shape[1] == 13
    assert phones.split("GO", "x") == ("G", "OW")
    alphabet = Alphabet.of(phones.split(said.text, said.name) for said in corpus.train)
    assert len(alphabet.symbols) == 33
    for said in corpus.utterances:
        assert len(alphabet.encode(phones.split(said.text, said.name), said.name)) < len(said.features)


def test_fsdd_is_whole(data):
    corpus, phones = fsdd()
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (2565, 135, 300)
    assert corpus.train[0].features.shape[1] == 40 and phones.split("seven", "x") == ("S", "EH", "V", "AH", "N")


def test_a_manifest_of_sounds_and_of_features(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav([100] * 900))
    np.save(tmp_path / "b.npy", np.ones((7, 40)))
    rows = [{"audio": "a.wav", "text": "one two"}, {"features": "b.npy", "text": "two", "id": "second"}]
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    first, second = utterances(path)
    assert (first.name, first.text, second.name, second.features.shape) == ("a", "one two", "second", (7, 40))
    assert first.features.shape == (9, 40)
    assert [said.name for said in manifest(path, path).test] == ["a", "second"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 1: expected .*got '{'"),
        ('{"audio": "a.wav"}', "line 1: expected"),
        ('{"audio": "a.wav", "features": "b.npy", "text": "a"}', "line 1: expected"),
        ('{"audio": "a.wav", "text": " "}', "line 1: expected a text, got an empty one; leave the utterance out"),
        ('{"audio": "a.wav", "text": "a"}', "a.wav: cannot be read"),
        ('{"features": "flat.npy", "text": "a"}', r"flat.npy: expected numbers \(frames, size\), got float64 \(3,\)"),
        ('{"features": "no.npy", "text": "a"}', "no.npy: cannot be read as a .npy file"),
        ("", "got no line"),
    ],
)
def test_mistakes_in_a_manifest_are_named(tmp_path, line, words):
    np.save(tmp_path / "flat.npy", np.ones(3))
    (tmp_path / "no.npy").write_bytes(b"no")
    (tmp_path / "m.jsonl").write_text(line)
    with pytest.raises(SpeechError, match=words):
        utterances(tmp_path / "m.jsonl")


def test_a_missing_manifest_is_named(tmp_path):
    with pytest.raises(SpeechError, match=r"m\.jsonl: cannot be read as a manifest"):
        utterances(tmp_path / "m.jsonl")


def test_units_and_labels():
    assert Characters().split(" One  two", "x") == tuple("one two") and Characters().join("one") == "one"
    assert Written().split("AH B", "x") == ("AH", "B") and Written().join(("AH", "B")) == "AH B"
    alphabet = Alphabet.of(["ba", "bc"])
    assert alphabet.classes == 4 and alphabet.encode("cab").tolist() == [3, 1, 2]
    assert alphabet.decode([3, 1]) == ("c", "a")


def test_mistakes_in_transcripts_are_named(tmp_path):
    alphabet = Alphabet(("a", "b"))
    with pytest.raises(SpeechError, match="first: 'c' not in the alphabet of 2 symbols"):
        alphabet.encode("abc", "first")
    with pytest.raises(SpeechError, match="first: expected a transcript with at least 1 unit, got none"):
        alphabet.encode("", "first")
    with pytest.raises(SpeechError, match="symbols: expected at least 1"):
        Alphabet.of([])
    with pytest.raises(SpeechError, match="first: 'HI' not in the pronouncing dictionary of 1 words"):
        Pronounced.parse("GO G OW", "d").split("go hi", "first")
    with pytest.raises(SpeechError, match="d, line 1: expected a word and its phones, got 'GO'"):
        Pronounced.parse("GO", "d")
    with pytest.raises(SpeechError, match=r"none.dic: cannot be read"):
        Pronounced.read(tmp_path / "none.dic")


def test_a_corpus_is_checked():
    def said(*shape, fill=1.0, rate=0):
        return Utterance("odd", torch.full(shape, fill), "a", rate)

    right = said(3, 2, rate=8000)
    Corpus("c", [right], [], [said(3, 2)], 0.01)
    assert Corpus("c", [right] * 9, [right], [right], 0.01).first(4).train == [right] * 4
    for wrong, words in (
        (said(3, 4), "odd: expected at least 1 frame of 2 features, as in odd, got 3 of 4"),
        (said(0, 2), "got 0 of 2"),
        (said(3, 2, rate=16000), "odd: expected 8000 samples a second, as in odd, got 16000; resample the recording"),
        (said(3, 2, fill=torch.nan), "odd: expected finite features"),
    ):
        with pytest.raises(SpeechError, match=words):
            Corpus("c", [right], [], [wrong], 0.01)
    with pytest.raises(SpeechError, match="c: expected at least 1 utterance to train on, got none"):
        Corpus("c", [], [], [], 0.01)
