"""`gibbsite tag` in this process: train, predict, evaluate, resume, report, and what mistakes are told."""

import io
import json

import pytest
import torch

from gibbsite import cli
from gibbsite.apps.tagging import Corpus, Sentence, feature_crf
from gibbsite.apps.tagging.models import read
from gibbsite.report import RunDirectory

TRAIN = """the\tD\ndog\tN\nruns\tV\n
a\tD\ncat\tN\nsleeps\tV\n
the\tD\ncat\tN\nruns\tV\n
"""
SPANS = "Tom\tI-PER\nruns\tO\n\nthe\tO\nNew\tI-LOC\nYork\tI-LOC\n\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "train.txt").write_text(TRAIN)
    (folder / "spans.txt").write_text(SPANS)
    (folder / "odd.txt").write_text(TRAIN.replace("sleeps\tV", "sleeps\tW"))
    (folder / "one.txt").write_text("the\tD\n")
    (folder / "broken.txt").write_text(TRAIN + "alone\n")
    return folder


def tag(*words):
    return cli.main(["tag", *map(str, words)])


def train(files, out, *more, corpus="train.txt", column="pos"):
    dev = ("--dev", files / corpus)
    return tag("train", files / corpus, *dev, "--test", files / corpus, "--column", column, "--out", out, *more)


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "pos"
    assert train(files, out, "--epochs", 20) == 0
    return out


def said(monkeypatch, capsys, text, *words):
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert tag("predict", *words) == 0
    return capsys.readouterr().out


def test_a_run_leaves_everything(run, capsys):
    directory = RunDirectory.open(run)
    rows = directory.results()
    assert [row["epoch"] for row in rows if "epoch" in row] == list(range(1, 21))
    assert [row["part"] for row in rows if row.get("kind") == "scores"] == ["dev", "test"]
    assert rows[-1]["kind"] == "finished" and directory.config()["parameters"]["epochs"] == 20
    page = (run / "report.html").read_text()
    for words in ("9 words of test have the right label", "Learning", "Worst errors", "most often taken for"):
        assert words in page
    assert "http" not in page and "--out" not in directory.config()["command"]


def test_text_is_tagged_line_by_line(run, monkeypatch, capsys):
    found = said(monkeypatch, capsys, "the cat runs\n\na dog\n", run)
    assert found == "the\tD\ncat\tN\nruns\tV\n\n\na\tD\ndog\tN\n\n"


def test_what_is_printed_is_a_corpus(run, monkeypatch, capsys, tmp_path):
    (tmp_path / "tagged.txt").write_text(said(monkeypatch, capsys, "the cat\na dog\n", run, "--n-best", 2, "--confidence"))
    corpus = Corpus.read(tmp_path / "tagged.txt", "2")
    assert [s.words for s in corpus] == [("the", "cat")] * 2 + [("a", "dog")] * 2
    assert corpus.sentences[0] == Sentence(("the", "cat"), ("D", "N")) and corpus.labels[0] != corpus.labels[1]
    third = Corpus.read(tmp_path / "tagged.txt", "3")
    assert all(0 <= float(label) <= 1 for labels in third.labels for label in labels)


def test_n_best_says_probabilities_that_fall(run, monkeypatch, capsys):
    found = said(monkeypatch, capsys, "the cat\n", run, "--n-best", 50)
    logs = [float(line.rsplit(" ", 1)[1]) for line in found.splitlines() if line.startswith("# ")]
    assert len(logs) == 9 and logs == sorted(logs, reverse=True)
    assert sum(2.718281828459045**log for log in logs) == pytest.approx(1, abs=1e-3)  # 3 labels, 2 words: all there are


def test_evaluate(run, files, capsys):
    capsys.readouterr()
    assert tag("evaluate", run, files / "train.txt") == 0
    found = dict(line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert found["sentences"] == "3" and found["words"] == "9" and found["words right"] == "100.0000%"
    assert 0 <= float(found["calibration error"]) < 0.5 and "spans, f1" not in found


def test_labels_that_training_has_not_count_as_errors(files, run, tmp_path, capsys):
    assert train(files, tmp_path / "run", "--dev", files / "odd.txt", "--epochs", 20) == 0
    assert "dev has labels that" in (said := capsys.readouterr().err) and said.rstrip().endswith("count as errors: W")
    (dev,) = [row for row in RunDirectory.open(tmp_path / "run").results() if row.get("part") == "dev"]
    assert dev["scores"]["unknown"] == 1 and dev["scores"]["accuracy"] == 8 / 9
    assert tag("evaluate", run, files / "odd.txt") == 0
    assert "unknown labels    1\nwords right       88.8889%" in capsys.readouterr().out


def test_a_corpus_that_cannot_be_scored_is_refused_before_training(files, tmp_path, capsys):
    (tmp_path / "strange.txt").write_text("the\tX\ncat\tY\n")
    assert train(files, tmp_path / "run", "--dev", tmp_path / "strange.txt") == 2
    assert "strange.txt: expected a sentence with words whose labels the tagger knows" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_spans_are_scored_as_spans(files, tmp_path, capsys):
    assert train(files, tmp_path / "run", corpus="spans.txt", column="ner") == 0
    assert "F1 of spans on test: 100.00 %" in capsys.readouterr().out
    assert tag("evaluate", tmp_path / "run", files / "spans.txt") == 0
    assert "spans, f1         100.0000%" in capsys.readouterr().out


def test_an_interrupted_run_goes_on(files, tmp_path, monkeypatch, capsys):
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert train(files, whole) == 0
    append, lines = feature_crf.append_line, []

    def interrupt(path, row):
        lines.append(row)
        if len(lines) == 3:
            raise KeyboardInterrupt
        append(path, row)

    monkeypatch.setattr(feature_crf, "append_line", interrupt)
    assert train(files, part) == 130
    assert "stopped before anything was scored" in (part / "report.html").read_text()
    assert cli.main(["resume", str(part)]) == 0
    first, second = (RunDirectory.open(path).results() for path in (whole, part))
    assert [{**row, "seconds": 0} for row in first] == [{**row, "seconds": 0} for row in second]
    one, two = (read(path / "model.safetensors").state_dict() for path in (whole, part))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert cli.main(["resume", str(part)]) == 0 and "nothing is left to do" in capsys.readouterr().out


def test_a_report_is_made_again(run):
    before = (run / "report.html").read_text()
    (run / "report.html").unlink()
    assert cli.main(["report", str(run)]) == 0
    assert (run / "report.html").read_text() == before


def test_without_dev_and_test_it_is_trained(files, tmp_path, capsys):
    assert tag("train", files / "train.txt", "--column", "pos", "--out", tmp_path / "run") == 0
    assert "Trained; --dev and --test name what to score." in capsys.readouterr().out


def test_a_run_in_two_stages_is_replaced_whole(files, tmp_path):
    model = ("--model", "crf-transducer", "--epochs", 1, "--first-epochs", 1)
    for again in ((), ("--replace",)):
        assert tag("train", files / "train.txt", "--column", "pos", "--out", tmp_path / "run", *model, *again) == 0
    RunDirectory.clear(tmp_path / "run", "tag")
    assert not any(tmp_path.joinpath("run").iterdir())


def test_a_run_is_replaced_only_when_told(files, run, capsys):
    assert train(files, run) == 2 and "not overwritten" in capsys.readouterr().err
    words = json.loads((run / "config.json").read_text())["words"]
    assert tag("train", *words, "--replace") == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["trian"], "there is no command 'trian'; did you mean train?"),
        (["train", "train.txt", "--model", "featurs"], "there is no model 'featurs'; did you mean features?"),
        (["train", "none.txt"], "none.txt: cannot be read"),
        (["train", "broken.txt", "--column", "pos"], "broken.txt, line 13: expected a word and at least one label"),
        (["train", "one.txt", "--column", "pos"], "one.txt: expected at least 2 labels, got D alone; is it the column?"),
        (["train", "train.txt", "--column", "pos", "--rate", "1e300"], "rate: expected steps that leave log p finite"),
        (["train", "train.txt", "--column", "upos"], "a column is one of pos, chunk, ner"),
        (["train", "train.txt", "--column", "pos", "--rate", "-1"], "rate: expected a positive number, got -1"),
        (["train", "train.txt", "--column", "pos", "--templates", "lowr[0]"], "did you mean lower?"),
        (["predict", "nothing"], "expected a run directory with config.json"),
    ],
)
def test_mistakes_are_told(files, tmp_path, monkeypatch, capsys, words, error):
    monkeypatch.chdir(files)
    monkeypatch.setattr("gibbsite.cli.tag.RUNS", tmp_path)
    assert tag(*words) == 2
    assert error in capsys.readouterr().err


def test_mistakes_about_a_run(run, files, capsys):
    assert tag("evaluate", run, files / "spans.txt", "--column", "ner") == 2
    assert "words whose labels the tagger knows (D, N, V), got none; is it the right column?" in capsys.readouterr().err
    assert tag("predict", run, "--n-best", 0) == 2
    assert "--n-best: expected at least 1, got 0" in capsys.readouterr().err
    for words in ([], ["--help"]):
        assert tag(*words) == (0 if words else 2) and "evaluate RUN FILE" in capsys.readouterr().out
