"""Runs HTA and mixdown on the same traces and explains how their figures differ.

    compare.py MIXDOWN OUT TRACES...    called by run.sh
    compare.py --hta FILES              the HTA run, a process of its own: to be measured
    compare.py --hta-keep FILES         the same with the last profiler step kept
"""

import json
import logging
import math
import os
import shutil
import sys
import time

from reasons import FIGURES, RULES, Trace, figures


def hta(files, keep_last):
    """Prints HTA's figures of {rank: file} as JSON."""
    logging.disable(logging.CRITICAL)
    from hta.trace_analysis import TraceAnalysis

    # Ranks are handed over: HTA finds them only in traces with a certain layout.
    analysis = TraceAnalysis(trace_files={int(r): f for r, f in files.items()}, include_last_profiler_step=keep_last)
    result = {}
    for row in analysis.get_temporal_breakdown(visualize=False).to_dict("records"):
        result[int(row["rank"])] = {
            "compute": float(row["compute_time(us)"]),
            "non-compute": float(row["non_compute_time(us)"]),
            "idle": float(row["idle_time(us)"]),
        }
    for row in analysis.get_comm_comp_overlap(visualize=False).to_dict("records"):
        value = float(row["comp_comm_overlap_pctg"])
        result[int(row["rank"])]["overlap"] = None if math.isnan(value) else value
    json.dump(result, sys.stdout)


def measured(command, stdout):
    """Runs a command and returns its elapsed and CPU seconds and its peak RSS in MB.

    wait4 and not getrusage(RUSAGE_CHILDREN), which keeps the peak of all children
    so far. Peak RSS is that of the largest process (HTA reads ranks in several) and
    starts at this process's own, so this one has to be small when it is called.
    """
    began = time.perf_counter()
    with open(stdout, "wb") as out, open(stdout + ".log", "wb") as log:
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, out.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
        ])
        _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"bench/hta: {' '.join(command)} failed, see {stdout}.log")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def ours(times):
    """HTA's four figures from mixdown's times of a rank."""
    return {
        "compute": times["compute_ns"] / 1000,
        "non-compute": (times["span_ns"] - times["idle_ns"] - times["compute_ns"]) / 1000,
        "idle": times["idle_ns"] / 1000,
        "overlap": 100 * times["hidden_comm_ns"] / times["comm_ns"] if times["comm_ns"] else None,
    }


def same(a, b, tolerance=1e-6):
    """Times are sums of whole nanoseconds, so what is left is the error of floats."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= tolerance


def digits(figure):
    """How far HTA's figure may be off: it rounds per cent to two digits."""
    return 0.00501 if figure == "overlap" else 1e-6


def explain(trace, many_steps, mine, theirs, kept):
    """For each figure, the rules that change it and by how much; None if they don't add up."""
    with_last = figures(trace, set(RULES), many_steps, keep_last=True)
    chain = [figures(trace, set(RULES[:n]), many_steps) for n in range(len(RULES) + 1)]
    result = {}
    for figure in FIGURES:
        steps = [c[figure] for c in chain]
        if not (
            same(steps[0], mine[figure])
            and same(steps[-1], theirs[figure], digits(figure))
            and same(with_last[figure], kept[figure], digits(figure))
        ):
            result[figure] = None
            continue
        result[figure] = [
            f"{rule} {after - before:+.2f}" if None not in (before, after) else rule
            for rule, before, after in zip(RULES, steps, steps[1:]) if before != after
        ]
    return result


def show(value):
    return "-" if value is None else f"{value:.2f}"


def run(mixdown, folder, traces):
    """Runs both and returns what the table needs; all runs come before any reading."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    report = os.path.join(folder, "mixdown")
    cost = {"mixdown": measured([mixdown, "analyze", traces, "--format", "json", "--quiet"], report)}
    with open(report) as f:
        ranks = [r for r in json.load(f)["ranks"] if r["device"] == "gpu"]

    # HTA wants names that end in .json or .gz, and fails on ranks without a device.
    files, theirs, kept = {}, {}, {}
    for r in ranks:
        name = f"rank{r['rank']}.json" + (".gz" if r["source"].endswith(".gz") else "")
        files[r["rank"]] = os.path.abspath(os.path.join(folder, name))
        shutil.copyfile(r["source"], files[r["rank"]])
    if files:
        listing = os.path.join(folder, "files")
        with open(listing, "w") as f:
            json.dump(files, f)
        theirs, cost["HTA"] = run_hta("--hta", listing)
        kept, _ = run_hta("--hta-keep", listing)
    return traces, ranks, files, theirs, kept, cost


def run_hta(how, listing):
    result = listing + how
    cost = measured([sys.executable, os.path.abspath(__file__), how, listing], result)
    with open(result) as f:
        return {int(r): v for r, v in json.load(f).items()}, cost


def table(traces, ranks, files, theirs, kept, cost):
    """Prints the table of one set and returns how many figures no rule explains."""
    print(f"\n{traces}")
    if not files:
        print("  skipped: no rank has device events, and HTA has figures of nothing else")
        return 0
    read = {rank: Trace(path) for rank, path in files.items()}
    many_steps = len(set().union(*(t.steps for t in read.values()))) > 1
    print(f"  {'rank':>4} {'figure':<14} {'HTA, kept':>12} {'HTA':>12} {'mixdown':>12} {'difference':>12}  reason")
    unexplained = 0
    for r in ranks:
        rank, mine = r["rank"], ours(r["time"])
        reasons = explain(read[rank], many_steps, mine, theirs[rank], kept[rank])
        for figure in FIGURES:
            a, b = theirs[rank][figure], mine[figure]
            difference = None if None in (a, b) else 0.0 if same(a, b, digits(figure)) else a - b
            reason = reasons[figure]
            if reason is None:
                unexplained += 1
                reason = ["UNEXPLAINED"]
            label = figure + (" %" if figure == "overlap" else " us")
            print(f"  {rank:>4} {label:<14} {show(kept[rank][figure]):>12} {show(a):>12} {show(b):>12} {show(difference):>12}  {', '.join(reason) or 'same'}")
    for name, (elapsed, cpu, rss) in cost.items():
        print(f"  {name}: {elapsed:.2f} s elapsed, {cpu:.2f} s CPU, {rss:.0f} MB peak RSS")
    return unexplained


def main():
    if sys.argv[1] in ("--hta", "--hta-keep"):
        with open(sys.argv[2]) as f:
            hta(json.load(f), sys.argv[1] == "--hta-keep")
        return
    mixdown, out, *sets = sys.argv[1:]
    runs = [run(mixdown, os.path.join(out, "traces", str(n)), traces) for n, traces in enumerate(sets)]
    unexplained = sum([table(*r) for r in runs])
    if unexplained:
        sys.exit(f"bench/hta: no rule of bench/hta/reasons.py explains {unexplained} figures")


if __name__ == "__main__":
    main()
