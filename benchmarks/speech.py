"""# Phone errors on AN4: CTC, CTC-CRF and LF-MMI with the same encoder, and what an epoch of each takes

Every loss learns from the same utterances, with the same encoder, masks, schedule and number of epochs, and is tested with
the moving average of its weights on the 130 test utterances. CTC is tested by its most probable path alone, and by that of
its scores with the n-gram of labels that the random fields have in them, weighed as is best on 47 held-out utterances. The
random fields need no such weight: the n-gram is part of what was learned. Differences are taken utterance by utterance, over
all seeds together, with a bootstrap over utterances.

    python benchmarks/speech.py --device cuda --data DIR --out OUT [--only ctc] [--seeds 3]   writes OUT/ctc-0.json, ...
    python benchmarks/speech.py --device cpu --data DIR --out OUT --times                     writes OUT/time-ctc.json, ...
    python benchmarks/speech.py --table OUT                                                   writes benchmarks/results/
"""

import argparse
import json
import os
import platform
import tempfile
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import torch
from _harness import RESULTS, machine

LOSSES = ("ctc", "ctc-crf", "lf-mmi")
NAMES = {"ctc": "CTC", "ctc-crf": "CTC-CRF", "lf-mmi": "LF-MMI", "ctc+lm": "CTC, n-gram in decoding"}
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", help="a directory with speech/an4_mfcc.zip; by default $GIBBSITE_DATA")
    parser.add_argument("--out", type=Path, default=Path("speech-benchmark"))
    parser.add_argument("--only", choices=LOSSES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.005)
    parser.add_argument("--order", type=int, default=4)
    parser.add_argument("--limit", type=int, default=0, help="utterances of each part, to try it out")
    parser.add_argument("--times", action="store_true", help="three epochs of each loss, for the time that they take")
    parser.add_argument("--table", type=Path, help="make the tables of the results in this directory")
    return parser.parse_args()


def decoded(rows, best):
    """The edits of each utterance: (errors, length) pairs, and its transcripts."""
    from gibbsite.apps.speech import edits

    return [[(edit := edits(labels, best(scores))).errors, edit.length] for scores, labels in rows]


def weighed(graph, weight: float):
    """The graph with its log-probabilities times a weight; what ends nowhere still does not."""
    scaled = (torch.where(part > -torch.inf, weight * part, part) for part in (graph.weight, graph.end))
    return replace(graph, **dict(zip(("weight", "end"), scaled)))


def with_ngram(rows, held_out, field):
    """CTC's scores with the n-gram of the labels, weighed as is best on held-out utterances."""
    from gibbsite.apps.speech.criterion import written

    graphs = {weight: weighed(field.denominator.graph, weight) for weight in WEIGHTS}

    def best(scores, weight):
        return written(graphs[weight], scores.log_softmax(-1)[None], torch.tensor([len(scores)]))[0]

    errors = {weight: sum(e for e, _ in decoded(held_out, partial(best, weight=weight))) for weight in WEIGHTS}
    weight = min(errors, key=lambda w: errors[w])
    return weight, decoded(rows, partial(best, weight=weight))


def measure(plan) -> dict:
    """One loss with one seed: errors of each utterance, the held-out curve, seconds of an epoch."""
    from gibbsite.apps.speech import CTCRandomField, learn, scores_of, task

    given, looks = task(plan), []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        recogniser, criterion, fitted = learn(plan, given, out=Path(folder), looked=looks.append)
    seconds = time.perf_counter() - began
    parts = [
        [(scores_of(said, recogniser), given.labels(said).tolist()) for said in part]
        for part in (given.corpus.test, given.corpus.validation)
    ]
    row = {"plan": asdict(plan), "looks": looks, "loss": [line["loss"] for line in fitted.metrics], "seconds": seconds}
    row["test"] = {plan.loss: decoded(parts[0], lambda scores: criterion.best(scores[None], torch.tensor([len(scores)]))[0])}
    if plan.loss == "ctc":
        field = CTCRandomField(given.alphabet.classes, given.transcripts(), plan.order)
        row["weight"], row["test"]["ctc+lm"] = with_ngram(*parts, field)
    else:
        row["graph"] = str(criterion.denominator.graph)
    return row | surroundings(plan.device)


def surroundings(device: str) -> dict:
    """Where and when."""
    cuda = torch.device(device).type == "cuda"
    cores = f"{os.cpu_count()} cores, {torch.get_num_threads()} threads"
    return {
        "hardware": f"{torch.cuda.get_device_name(device)}; {machine()['cpu']}, {cores}"
        if cuda
        else f"{machine()['cpu']}, {cores}",
        "versions": f"torch {torch.__version__}, Python {platform.python_version()}",
        "date": datetime.now(UTC).date().isoformat(),
    }


def planned(options: argparse.Namespace, loss: str, seed: int):
    """What is learned, the same for every loss."""
    from gibbsite.apps.speech import Plan

    return Plan(
        data="an4", loss=loss, layers=options.layers, width=options.width, dropout=0.2, order=options.order,
        epochs=options.epochs, batch=options.batch, rate=options.rate, limit=options.limit, looks=4, seed=seed,
        device=options.device,
    )  # fmt: skip


def time_epochs(options: argparse.Namespace) -> None:
    """The seconds of three epochs of each loss; none of the three is left out, the first of which compiles."""
    from gibbsite.apps.speech import learn, task

    options.out.mkdir(parents=True, exist_ok=True)
    for loss in [options.only] if options.only else LOSSES:
        plan, looks = replace(planned(options, loss, 0), epochs=3, looks=3), []
        with tempfile.TemporaryDirectory() as folder:
            learn(plan, task(plan), out=Path(folder), looked=looks.append)
        clock = "cpu_seconds" if plan.device == "cpu" else "seconds"
        row = {"plan": asdict(plan), "seconds": [look[clock] for look in looks], **surroundings(plan.device)}
        options.out.joinpath(f"time-{loss}.json").write_text(json.dumps(row) + "\n")
        print(f"{loss}: {', '.join(f'{second:.2f}' for second in row['seconds'])} s an epoch", flush=True)


def run(options: argparse.Namespace) -> None:
    """All losses and seeds that are asked for; those whose results lie in the directory already are left as they are."""
    options.out.mkdir(parents=True, exist_ok=True)
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for loss in [options.only] if options.only else LOSSES:
            result = options.out / f"{loss}-{seed}.json"
            if result.exists():
                continue
            row = measure(planned(options, loss, seed))
            result.write_text(json.dumps(row) + "\n")
            rates = {name: sum(e for e, _ in found) / sum(n for _, n in found) for name, found in row["test"].items()}
            told = ", ".join(f"{name} {100 * rate:.2f} %" for name, rate in rates.items())
            print(f"{loss}, seed {seed}: {told}; {epoch_seconds(row):.2f} s an epoch, {row['seconds']:.0f} s", flush=True)


def epoch_seconds(row: dict) -> float:
    """The median over the pieces of a run, the first of which compiles."""
    times = sorted(look["seconds"] for look in row["looks"])
    return times[len(times) // 2]


def table(folder: Path) -> None:
    """results/speech.json and results/speech.md, of the results that are in a directory so far."""
    rows = [json.loads(path.read_text()) for path in sorted(folder.glob("*-[0-9]*.json"))]
    times = [json.loads(path.read_text()) for path in sorted(folder.glob("time-*.json"))]
    if not rows:
        raise SystemExit(f"{folder}: expected results such as ctc-0.json, got none; run without --table first")
    plans = {json.dumps(settings(row), sort_keys=True) for row in rows}
    if len(plans) > 1:
        raise SystemExit(f"{folder}: expected results of one plan, got {len(plans)} that differ: {'; '.join(sorted(plans))}")
    lines = ["| loss | phone errors, % by seed | all seeds, % | 95 % interval | less than CTC's by | seconds an epoch |",
             "|---|---|---|---|---|---|", *errors(rows)]  # fmt: skip
    parts = [__doc__.split("\n\n    python")[0], described(rows), "\n".join(lines)]
    if times:
        parts.append("Three epochs by themselves, in CPU-seconds where there is no GPU:")
        parts.append("\n".join(["| loss | seconds of each | machine |", "|---|---|---|", *map(timed, times)]))
    RESULTS.joinpath("speech.md").write_text("\n\n".join(parts) + "\n")
    RESULTS.joinpath("speech.json").write_text(json.dumps({"runs": rows, "times": times}) + "\n")
    print("\n".join(lines))


def settings(row: dict) -> dict:
    """What all results of a table must have in common: the plan but for its loss and seed."""
    return {name: value for name, value in row["plan"].items() if name not in ("loss", "seed")}


def errors(rows: list[dict]) -> list[str]:
    """A line for each way to recognise; what is compared with CTC is of the seeds that both have."""
    from gibbsite.apps.speech.edits import Edits
    from gibbsite.apps.speech.scores import difference, error_rate

    found: dict[str, dict[int, list]] = {}
    for row in rows:
        for name, pairs in row["test"].items():
            found.setdefault(name, {})[row["plan"]["seed"]] = pairs

    def pooled(name: str, seeds: set[int]) -> list[Edits]:
        each = zip(*(found[name][seed] for seed in sorted(seeds)))
        return [Edits(sum(e for e, _ in same), 0, 0, sum(n for _, n in same)) for same in each]

    lines = []
    for name in [name for name in NAMES if name in found]:
        own, both = set(found[name]), set(found[name]) & set(found.get("ctc", {}))
        by_seed = [sum(e for e, _ in found[name][seed]) / sum(n for _, n in found[name][seed]) for seed in sorted(own)]
        value, low, high = (100 * part for part in error_rate(pooled(name, own), seed=0))
        gain = ""
        if both and name != "ctc":
            less, least, most = (100 * part for part in difference(pooled("ctc", both), pooled(name, both), seed=0))
            gain = f"{less:.2f} ({least:.2f} to {most:.2f})"
        seconds = sorted(epoch_seconds(row) for row in rows if name in row["test"])
        each = ", ".join(f"{100 * rate:.2f}" for rate in by_seed)
        lines.append(
            f"| {NAMES[name]} | {each} | {value:.2f} | {low:.2f} to {high:.2f} | {gain} | {seconds[len(seconds) // 2]:.2f} |"
        )
    return lines


def described(rows: list[dict]) -> str:
    """The settings, the graphs, the weights that were chosen, and the machine."""
    plan, weights = rows[0]["plan"], [f"{row['weight']:g} for seed {row['plan']['seed']}" for row in rows if "weight" in row]
    graphs = sorted({f"{NAMES[row['plan']['loss']]} {row['graph']}" for row in rows if "graph" in row})
    told = [
        f"{plan['encoder']} of {plan['layers']} layers, {plan['width']} wide, every {plan['subsample']} frames as one; "
        f"{plan['epochs']} epochs in batches of {plan['batch']}, Adam at {plan['rate']:g} with one epoch of warm-up and a "
        f"cosine, dropout {plan['dropout']:g}, {plan['time_masks']} masks of time, weights averaged with decay "
        f"{plan['average']:g}; a {plan['order']}-gram of phones."
    ]
    told += [f"Denominators: {'; '.join(graphs)}."] if graphs else []
    told += [f"Weights of the n-gram that were best for CTC: {', '.join(weights)}."] if weights else []
    machines = sorted({f"{row['hardware']}; {row['versions']}; {row['date']}" for row in rows})
    return " ".join(
        [*told, f"Device {plan['device']}: {' / '.join(machines)}.", "Seconds are by the clock, with whatever else ran."]
    )


def timed(row: dict) -> str:
    """A line of the time that epochs take."""
    seconds = ", ".join(f"{second:.2f}" for second in row["seconds"])
    where = f"{row['plan']['device']}: {row['hardware']}; {row['versions']}; {row['date']}"
    return f"| {NAMES[row['plan']['loss']]} | {seconds} | {where} |"


if __name__ == "__main__":
    given = arguments()
    if given.data:
        os.environ["GIBBSITE_DATA"] = str(Path(given.data).resolve())
    if given.table:
        table(given.table)
    else:
        time_epochs(given) if given.times else run(given)
