"""All that can be chosen when a recogniser is trained: data, units, loss, encoder, and how long."""

from dataclasses import dataclass
from typing import Literal, final

from ...check import number
from ...space import whole
from .errors import SpeechError


@final
@dataclass(frozen=True)
class Plan:
    """Train a recogniser of phones or characters from recordings, by CTC, CTC-CRF or LF-MMI."""

    data: Literal["an4", "fsdd", "manifest"] = "an4"
    """CMU AN4 (cepstra), the Free Spoken Digit Dataset (sound), or your own recordings, which --train and --test name."""
    units: Literal["phones", "characters", "written"] = "phones"
    """What is recognised: phones by a dictionary, characters, or whatever the transcripts hold between spaces."""
    loss: Literal["ctc", "ctc-crf", "lf-mmi"] = "ctc-crf"
    """CTC; a random field with CTC's topology and an n-gram of labels; or that with a topology of hidden Markov models."""
    encoder: Literal["bilstm", "conformer"] = "bilstm"
    """Bidirectional LSTMs, or a small Conformer."""
    train: str = ""
    """For --data manifest: JSON lines {"audio": "file.wav" or "features": "file.npy", "text": "what was said"}."""
    test: str = ""
    """For --data manifest: the same, of utterances that are not learned."""
    dictionary: str = ""
    """A pronouncing dictionary, `WORD PHONE PHONE ...` a line; AN4 and FSDD bring their own."""
    limit: int = 0
    """Use at most that many utterances of each part (0: all)."""
    layers: int = 2
    """Layers of LSTMs, or blocks of the Conformer."""
    width: int = 256
    """Numbers in a hidden vector."""
    subsample: int = 3
    """Frames that become one."""
    dropout: float = 0.2
    """Share of hidden numbers that are dropped while learning."""
    time_masks: int = 2
    """Stretches of time that are masked in each utterance, anew each time; each up to a tenth of it."""
    band_masks: int = 0
    """Bands of features that are masked, each up to a fifth of them."""
    order: int = 4
    """The n of the n-gram of labels in CTC-CRF and LF-MMI."""
    ctc_weight: float = 0.0
    """How much of CTC's own loss is added to that of CTC-CRF."""
    epochs: int = 40
    """How often every utterance is learned from."""
    batch: int = 16
    """Utterances in a mini-batch."""
    rate: float = 0.005
    """Learning rate of Adam at its highest; it rises over the first epoch and falls to 0 as a cosine."""
    average: float = 0.99
    """Decay of the moving average of the weights, which is what is kept."""
    looks: int = 10
    """How often the errors on held-out utterances are counted while learning."""
    seed: int = 0
    """Where all random numbers start."""
    device: str = "cpu"
    """Where torch computes: cpu, cuda, cuda:1, ..."""

    def __post_init__(self):
        for name, least in {"limit": 0, "layers": 1, "width": 2, "subsample": 1, "time_masks": 0, "band_masks": 0,
                            "order": 1, "epochs": 1, "batch": 1, "looks": 1}.items():  # fmt: skip
            whole(getattr(self, name), name, least)
        number(self.rate, "rate", above=0)
        number(self.ctc_weight, "ctc_weight", least=0)
        number(self.dropout, "dropout", least=0, below=1)
        number(self.average, "average", least=0, below=1)
        if self.width % 2 or (self.encoder == "conformer" and self.width % 8):
            raise SpeechError(f"width: expected an even number, for a Conformer a multiple of 8, got {self.width}")
        if (self.data == "manifest") != bool(self.train) or (self.test and not self.train):
            raise SpeechError(
                "train, test: expected files with --data manifest, and none with other data, got "
                f"--data {self.data} --train {self.train!r} --test {self.test!r}"
            )
        if self.data == "manifest" and self.units == "phones" and not self.dictionary:
            raise SpeechError(
                "dictionary: expected a pronouncing dictionary, for the units are phones; or choose --units characters, or "
                "--units written where the transcripts hold phones"
            )
