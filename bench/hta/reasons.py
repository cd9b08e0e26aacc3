"""What HTA counts otherwise than mixdown, as rules that can be applied one by one.

Both ends are checked by compare.py: without rules the figures have to be
mixdown's, with all rules HTA's. What a rule changes on the way is its share of
the difference.
"""

import gzip
import json
import math
from decimal import Decimal

# The order in which they are applied; README.md explains them.
RULES = ["streams", "names", "no-launch", "last-step", "whole-us"]
FIGURES = ["compute", "non-compute", "idle", "overlap"]

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}


class Trace:
    def __init__(self, path):
        opened = gzip.open(path) if path.endswith(".gz") else open(path, "rb")
        with opened as f:
            # Decimal, because nanoseconds of today's dates don't fit a float.
            events = json.loads(f.read(), parse_float=Decimal)["traceEvents"]
        # One time with a fraction, or an event without a time, makes HTA round the file.
        self.fractions = any(not isinstance(e.get("ts"), int) for e in events)
        self.events = [e for e in events if e.get("dur") is not None and e.get("cat") not in (None, "Trace")]
        self.steps = {e["name"] for e in self.events if e["name"].startswith("ProfilerStep")}


def stream(e):
    try:
        return int(argument(e, "stream"))
    except ValueError:
        return -1


def argument(e, name):
    args = e.get("args")
    return args.get(name, -1) if isinstance(args, dict) else -1


def linked(e):
    """Whether HTA judges an event by its launch and not by its own start."""
    return (stream(e) >= 0 and argument(e, "correlation") >= 0) or e["name"] in ("Event Sync", "Context Sync")


def bounds(e, rounded):
    """Start and end in ns. HTA keeps the whole microseconds inside an event."""
    if rounded:
        start, dur = float(e["ts"]), float(e["dur"])
        return math.ceil(start) * 1000, math.floor(start + dur) * 1000
    return int(e["ts"] * 1000), int(e["ts"] * 1000) + int(e["dur"] * 1000)


def kind(e, by_name):
    name = e["name"]
    if not by_name:
        if name.lower().startswith(("nccl", "rccl")):
            return "comm"
        return "compute" if e["cat"] == "kernel" else "memory"
    if name.startswith("nccl") and "Kernel" in name:
        return "comm"
    other = "Memcpy" in name or "Sync" in name or name.startswith(("Memset", "dma"))
    return "memory" if other else "compute"


def figures(trace, rules, many_steps, keep_last=False):
    """The four figures, in us and per cent, under a set of rules.

    many_steps says whether the ranks together have more than one profiler step:
    only then does HTA leave any of the device's events out. keep_last is HTA asked
    to keep the last step: it then leaves out what is launched after its end.
    """
    rounded = "whole-us" in rules and trace.fractions
    if "streams" in rules:
        device = [e for e in trace.events if stream(e) != -1]
    else:
        device = [e for e in trace.events if e["cat"] in DEVICE]
    if many_steps:
        host = [e for e in trace.events if not linked(e)]
        steps = [bounds(e, rounded) for e in host if e["name"] in trace.steps]
        if keep_last:
            last = max((end for _, end in steps), default=-math.inf) + 1
        else:
            last = max((start for start, _ in steps), default=-math.inf)
        launched, early = set(), set()
        for e in host:
            launched.add(argument(e, "correlation"))
            if bounds(e, rounded)[0] < last:
                early.add(argument(e, "correlation"))
        if "no-launch" in rules:
            device = [e for e in device if not linked(e) or argument(e, "correlation") in launched]
        if "last-step" in rules:
            late = launched - early
            device = [
                e for e in device
                if (argument(e, "correlation") not in late if linked(e) else bounds(e, rounded)[0] < last)
            ]

    spans = {"comm": [], "compute": [], "memory": []}
    for e in device:
        spans[kind(e, "names" in rules)].append(bounds(e, rounded))
    busy = merged(spans["comm"] + spans["compute"] + spans["memory"])
    compute, comm = merged(spans["compute"]), merged(spans["comm"])
    total = busy[-1][1] - busy[0][0] if busy else 0
    return {
        "compute": length(compute) / 1000,
        "non-compute": (length(busy) - length(compute)) / 1000,
        "idle": (total - length(busy)) / 1000,
        "overlap": 100 * common(compute, comm) / length(comm) if comm else None,
    }


def merged(spans):
    out = []
    for start, end in sorted(spans):
        # An event shorter than a microsecond can end before it starts once it is
        # rounded; HTA lets it count as negative, so it is not dropped here.
        if out and start <= reach:
            out[-1][1] = max(out[-1][1], end)
            reach = max(reach, end)
        else:
            out.append([start, end])
            reach = end if len(out) == 1 else max(reach, end)
    return out


def length(spans):
    return sum(end - start for start, end in spans)


def common(a, b):
    """How long both run."""
    total = i = j = 0
    while i < len(a) and j < len(b):
        total += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total
