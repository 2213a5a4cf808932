"""Which command a command line names, and the status that it ends with."""

import sys
from collections.abc import Callable, Sequence

from ..datasets import DatasetError
from ..learn import CheckpointError, Diverged
from ..recipes import RECIPES
from ..report import RunDirectoryError
from ..report.record import package_version
from .logz import logz
from .runs import report, resume, run
from .sample import sample
from .score import score
from .speech import speech
from .tag import tag
from .words import UsageError, named

INTERRUPTED = 130

_HELP = """usage: gibbsite COMMAND

Energy-based models: sampled exactly, with every number beside its error.

commands:
  run RECIPE       run an experiment and write a report: {recipes}
  recipes          say what each recipe does
  speech COMMAND   learn to recognise speech, transcribe it, count errors: train, decode, nbest, evaluate
  resume RUN       go on with a training run that was interrupted or killed
  report RUN       make a run's report.html again from what it saved

of a run that trained a model:
  sample RUN -n N  draw N states
  logz RUN         bracket log Z from below and from above
  score RUN DATA   U(x) of the states in a .npy or .npz file, and their log-likelihood once log Z is bracketed

label the words of sentences:
  tag train TRAIN  train a tagger; tag predict RUN, tag evaluate RUN FILE use it

options:
  -h, --help       show this; after a command or a recipe, its own help
  --version        show the version

example:
  gibbsite run rbm-digits --preset smoke --out runs/first
  gibbsite sample runs/first -n 64
"""
_RECIPES_HELP = (
    "usage: gibbsite recipes\n\nLists the recipes with one line each and the figure of the paper that each redraws.\n"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status: 0, 1 when something failed, 2 for a wrong command, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _command(words)
    except SystemExit as stop:  # tyro's, after --help or a wrong flag
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except (UsageError, RunDirectoryError, CheckpointError) as error:
        print(f"gibbsite: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("gibbsite: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (OSError, DatasetError, Diverged) as error:
        print(f"gibbsite: error: {error}", file=sys.stderr)
        return 1


def _command(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(_HELP.format(recipes=", ".join(RECIPES)), end="")
        return 0 if words else 2
    if words[0] == "--version":
        print(f"gibbsite {package_version()}")
        return 0
    commands: dict[str, Callable[[list[str]], int]] = {
        "run": run,
        "recipes": _recipes,
        "resume": resume,
        "report": report,
        "sample": sample,
        "logz": logz,
        "score": score,
        "tag": tag,
        "speech": speech,
    }
    return commands[named("command", words[0], commands)](words[1:])


def _recipes(words: list[str]) -> int:
    if words:
        print(_RECIPES_HELP, end="")
        return 0 if words[0] in ("-h", "--help") else 2
    for name, recipe in RECIPES.items():
        print(f"{name:18}{recipe.summary}\n{'':18}{recipe.figure}; presets: {', '.join(recipe.presets)}")
    return 0
