"""Runs a function of a test in processes of its own, forked from one that has imported everything: they start at once."""

import contextlib
import multiprocessing
import tempfile
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.learn.warm"])


def start(function, *arguments):
    """A process that runs the function."""
    process = _CONTEXT.Process(target=function, args=arguments)
    process.start()
    return process


def finish(*processes, seconds=300):
    """Waits for the processes; an error unless all end well."""
    try:
        for process in processes:
            process.join(seconds)
        assert [process.exitcode for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()


def together(function, size, *arguments):
    """Runs function(rank, *arguments) in `size` processes that form a gloo group."""
    with meeting(function, size, *arguments) as processes:
        finish(*processes)


@contextlib.contextmanager
def meeting(function, size, *arguments):
    """The processes of `together` while they run; none outlives the block."""
    with tempfile.TemporaryDirectory() as folder:
        group = [start(_joined, function, rank, size, Path(folder) / "meeting", arguments) for rank in range(size)]
        try:
            yield group
        finally:
            for process in group:
                process.kill()
                process.join()


def _joined(function, rank, size, meeting, arguments):
    from torch import distributed

    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
    try:
        function(rank, *arguments)
    finally:
        distributed.destroy_process_group()
