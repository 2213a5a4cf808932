"""Lines of metrics: none lost, none twice, whatever the disk does."""

import json
import resource

import pytest

from gibbsite.files import append_line, read_lines
from gibbsite.learn import CheckpointError
from gibbsite.learn.journal import Journal


def text(*steps):
    return "".join(json.dumps({"step": step}) + "\n" for step in steps)


def test_going_on_from_a_checkpoint_takes_back_the_lines_after_it_and_keeps_those_of_others(tmp_path):
    path = tmp_path / "metrics.jsonl"
    first = Journal(path)
    append_line(path, {"kind": "baseline", "step": 0})
    for step in (1, 2):
        first.write({"step": step})
    kept = first.state()
    first.write({"step": 3})
    path.write_text(path.read_text() + '{"step": 4, "lo')  # killed while it wrote
    again = Journal(path)
    again.restore(kept)
    again.write({"step": 3})
    assert read_lines(path) == [{"kind": "baseline", "step": 0}, {"step": 1}, {"step": 2}, {"step": 3}]
    assert again.lines == [{"step": 1}, {"step": 2}, {"step": 3}]
    forgetful = Journal(path)  # the mutant: it takes nothing back
    forgetful.write({"step": 3})
    assert [line["step"] for line in read_lines(path)] == [0, 1, 2, 3, 3]


def test_a_new_run_takes_back_what_one_without_a_checkpoint_wrote(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(text(1, 2))
    journal = Journal(path)
    journal.restore(None)
    assert (journal.lines, path.read_text()) == ([], "")


def test_lines_of_a_run_that_has_no_checkpoints_are_not_a_new_runs_to_take_back(tmp_path):
    path = tmp_path / "metrics.jsonl"
    Journal(path).check_new()  # there is no file
    append_line(path, {"kind": "baseline", "step": 0})
    Journal(path).check_new()  # nor a line of a run
    path.write_text(text(1, 2))
    with pytest.raises(CheckpointError, match="holds 2 lines of a run whose checkpoints are not beside it; move it away"):
        Journal(path).check_new()
    assert path.read_text() == text(1, 2)


def test_a_file_that_cannot_be_read_or_written_is_an_error_and_one_that_need_not_be_written_is_left_alone(tmp_path):
    path, soft = tmp_path / "metrics.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    path.mkdir()
    with pytest.raises(CheckpointError, match=r"cannot be read .*; choose another directory"):
        Journal(path).restore(None)
    path.rmdir()
    path.write_text(text(1, 2, 3))
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5, soft[1]))
        Journal(path).restore({"written": 3, "waiting": []})
        with pytest.raises(CheckpointError, match=r"not written .*; nothing was changed, make room first"):
            Journal(path).restore({"written": 2, "waiting": []})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, soft)
    assert path.read_text() == text(1, 2, 3) and list(tmp_path.iterdir()) == [path]


def test_lines_that_are_missing_or_unreadable_are_an_error_and_left_alone(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for content, message in ((text(1), "expected at least the 2 lines"), ("nonsense\n", "expected one JSON object a line")):
        path.write_text(content)
        with pytest.raises(CheckpointError, match=message):
            Journal(path).restore({"written": 2, "waiting": []})
        assert path.read_text() == content


def test_a_full_disk_cuts_no_line_and_what_it_refused_is_written_later(tmp_path):
    path, soft = tmp_path / "metrics.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    journal = Journal(path)
    journal.write({"step": 1})
    size = path.stat().st_size
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5, soft[1]))  # 5 bytes of the next line have room
        with pytest.warns(UserWarning, match="kept in memory"):
            journal.write({"step": 2})
        kept = journal.state()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, soft)
    assert path.read_text() == text(1), "a cut line would spoil the file"
    assert kept == {"written": 1, "waiting": [{"step": 2}]}
    again = Journal(path)
    again.restore(kept)
    assert path.read_text() == text(1, 2)
    journal.write({"step": 3})
    assert path.read_text() == text(1, 2, 2, 3)  # of two that write, which `fit` never lets happen
