"""# How large are the exact denominators of CTC-CRF for n-grams of phones, and what do they cost?

n-grams by modified Kneser-Ney from the pronunciations of cmudict (39 phones, stress left out), composed with the topology of
CTC; then the sum over all paths and its gradient for 16 utterances of 500 frames. Each in a process of its own on one
thread: seconds of CPU time to make the graph from the n-gram model, and of the second call for the sum (the first compiles),
and how far the memory in use rises during that call. Every label of every context has an arc: nothing is left out.
"""

import argparse
import json
import os
import re
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import torch
from _harness import child, heading, machine, number, table, write
from memory import _kibibytes, _more

import gibbsite as gb

BATCH, FRAMES, ORDERS = 16, 500, (2, 3, 4)


def pronunciations() -> tuple[torch.Tensor, int]:
    """Padded phone ids, from 1; 0 ends a sequence."""
    if "GIBBSITE_DATA" not in os.environ:
        raise SystemExit("GIBBSITE_DATA: expected the directory that has text/cmudict.zip, got none; set it")
    path = Path(os.environ["GIBBSITE_DATA"]) / "text" / "cmudict.zip"
    lines = zipfile.ZipFile(path).read("cmudict/cmudict").decode("latin1").splitlines()
    rows = [re.sub(r"\d", "", " ".join(line.split()[2:])).split() for line in lines]
    phones = {phone: n for n, phone in enumerate(sorted({p for row in rows for p in row}), 1)}
    table = torch.zeros(len(rows), max(map(len, rows)) + 1, dtype=torch.long)
    for place, row in zip(table, rows):
        place[: len(row)] = torch.tensor([phones[p] for p in row])
    return table, len(phones) + 1


def measured(order: int) -> dict[str, Any]:
    """What the graph of one order takes, in this process."""
    words, columns = pronunciations()
    model = gb.distributions.kneser_ney(words, gb.Tokens(words.shape[1], columns, 0), order=order)
    began = time.process_time()
    labels = gb.exact.label_model(model)
    graph = gb.exact.compose(gb.exact.ctc_topology(columns), labels)
    made = time.process_time() - began
    logits = 2 * torch.randn(BATCH, FRAMES, columns, generator=torch.Generator().manual_seed(0))
    logits, frames = logits.requires_grad_(), torch.full((BATCH,), FRAMES)

    def work() -> None:
        torch.autograd.grad(gb.exact.forward(graph, logits.log_softmax(-1), frames).sum(), logits)

    work()
    held, began = _kibibytes("VmRSS"), time.process_time()
    more = _more(work)
    seconds = time.process_time() - began
    sizes = {"states": graph.states, "arcs": graph.arcs, "contexts": labels.states}
    return {"order": order, **sizes, "made": made, "seconds": seconds, "held": held, "more": more}


def _page(record: dict[str, Any]) -> str:
    rows = [
        [f"{row['order']}-gram", *(f"{row[key]:,}" for key in ("contexts", "states", "arcs")),
         number(row["made"]), number(row["seconds"]), *(f"{row[key] / 1024:,.0f}" for key in ("held", "more"))]
        for row in record["rows"]
    ]  # fmt: skip
    columns = ["", "contexts", "states", "arcs", "made, s", "sum and gradient, s", "held, MiB", "more in the call, MiB"]
    return heading(record) + "\n" + table(columns, rows)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--child", metavar="OUT", help="used by the script itself")
    arguments.add_argument("--cpu", type=int, default=0, help="the CPU that it is pinned to")
    given = arguments.parse_args()
    if given.child:
        Path(given.child).write_text(json.dumps(measured(int(os.environ["ORDER"]))))
        return
    rows = []
    for order in ORDERS:
        os.environ["ORDER"] = str(order)
        rows.append(child(sys.argv[0], "one thread", given.cpu))
    record = {"question": __doc__, "machine": machine(), "rows": rows}
    write("ctc_crf_graphs", record, _page(record))


if __name__ == "__main__":
    main()
