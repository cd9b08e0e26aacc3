"""Jobs with and without a change that `mixdown simulate --what-if` can suppose: traces before, step times of both.

Usage: python what_ifs.py --traces [--tries N] [--into FOLDER] [SET...]   (default: every set, beside this folder)
       python what_ifs.py --times [--rounds N] [--steps N] [--only TEXT] [--add] [FILE]   (default ../what_ifs.json)

The jobs that have the same number of ranks and the same links run in the same processes, a few steps of each
in turn, round after round, as pipeline_times.py does it. A step lasts from the first rank's start to the last
rank's end, and starts after a barrier. Needs root, for the links (network.py). With --only the entries of
other jobs stay in the file as they are; with --add the steps that it has stay too.
"""

import argparse
import collections
import dataclasses
import functools
import json
import os
import platform
import shutil
import statistics
import tempfile

import torch
import torch.distributed as dist

import common
import data_parallel
import network
import pipeline_orders
import pipeline_times
import scheduled
from what_if_cases import CASES, JOBS, TRACES

WARM_UP = 4
KINDS = {data_parallel.Config: data_parallel.Trainer, pipeline_orders.Config: pipeline_orders.Trainer,
         scheduled.Config: scheduled.Trainer}


def trainer(job, rank):
    return KINDS[type(job)](job, rank)


# Traces


def program(job, rank, recorder):
    """What common.generate runs in each process."""
    return KINDS[type(job)](job, rank, recorder.span).step


def trace(name, job, folder, tries):
    """Traces a job several times, and keeps the run whose longest step is the shortest."""
    settings = dataclasses.replace(common.SHAPES, world=job.world, network=job.network, start_method="fork")
    best = None
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(tries):
            made = os.path.join(scratch, str(number))
            common.generate(functools.partial(program, job), made, job.about, settings)
            with open(os.path.join(made, "truth.json")) as f:
                longest = max(step["wall_ns"] for rank in json.load(f)["ranks"] for step in rank["steps"])
            if best is None or longest < best[0]:
                best = longest, made
        shutil.copytree(best[1], os.path.join(folder, name), dirs_exist_ok=True)
    print(f"{name}: {best[0] / 1e6:.1f} ms", flush=True)


# Times


def measure(rank, jobs, rounds, steps):
    """Runs all jobs in turn; the start and end of each step of this rank, and the pieces of other work."""
    trainers = [(job, trainer(job, rank)) for job in jobs]
    found = {job.name: {"steps": [], "pieces": None} for job in jobs}
    for job, made in trainers:
        gaps = collections.defaultdict(list)
        for index in range(WARM_UP):
            dist.barrier()
            made.step(index)
            for n, ns in getattr(made, "gaps", {}).items():
                gaps[n].append(ns)
        if getattr(job, "fill_ms", 0):
            made.fill({n: statistics.median(list_[1:]) for n, list_ in gaps.items()})
            found[job.name]["pieces"] = sum(made.pieces.values())
    for _ in range(rounds):
        for job, made in trainers:
            for index in range(steps + 1):
                step = pipeline_times.timed_step(made, pipeline_times.Passes(), None, index)
                if index > 0:  # the first one finds caches of the job before
                    found[job.name]["steps"].append((step["start"], step["end"]))
    return found


def _rank_main(rank, scratch, links, jobs, rounds, steps):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = network.enter(links, rank, scratch)
    dist.init_process_group("gloo", init_method=f"file://{scratch}/store", rank=rank, world_size=jobs[0].world)
    found = measure(rank, jobs, rounds, steps)
    with open(os.path.join(scratch, f"{rank}.json"), "w") as f:
        json.dump(found, f)
    dist.barrier()
    dist.destroy_process_group()


def start(jobs, rounds, steps):
    """Starts the processes of jobs that have size and links in common; by job, what was measured."""
    links = jobs[0].network
    with tempfile.TemporaryDirectory() as scratch:
        network.start_processes(links, _rank_main, (scratch, links, jobs, rounds, steps), jobs[0].world, "fork", scratch)
        ranks = []
        for rank in range(jobs[0].world):
            with open(os.path.join(scratch, f"{rank}.json")) as f:
                ranks.append(json.load(f))
    entries = {}
    for job in jobs:
        steps_of = zip(*(rank[job.name]["steps"] for rank in ranks))
        walls = [max(end for _, end in step) - min(begin for begin, _ in step) for step in steps_of]
        entries[job.name] = {"about": job.about, "ranks": job.world, **pipeline_times.spread(walls), "steps_ns": walls}
        if isinstance(job, pipeline_orders.Config):
            entries[job.name]["order"] = job.order
        if getattr(job, "fill_ms", 0):
            entries[job.name]["pieces"] = [rank[job.name]["pieces"] for rank in ranks]
    return entries


def times(file, only, add, rounds, steps):
    groups = collections.defaultdict(list)
    for job in JOBS:
        if only in job.name:
            groups[job.world, job.network].append(job)
    entries = {}
    if (only or add) and os.path.exists(file):
        with open(file) as f:
            entries = {job["name"]: job for job in json.load(f)["jobs"]}
    for jobs in groups.values():
        for name, entry in start(jobs, rounds, steps).items():
            before = entries[name]["steps_ns"] if add and name in entries else []
            walls = before + entry["steps_ns"]
            entries[name] = {"name": name, **entry, **pipeline_times.spread(walls), "steps_ns": walls}
            print(f"{name}: {entry['median_ns'] / 1e6:.1f} ms, +- {entry['iqr_ns'] / 2e6:.1f}", flush=True)
    for job in JOBS:
        if job.name in entries:
            entries[job.name]["about"] = job.about
    speeds = [f"{speed / 1e9:.2f}GB/s" for speed in data_parallel.codec()]
    with_codec = [{**case, "what_if": case["what_if"].format(*speeds)} for case in CASES]
    with open(file, "w") as f:
        f.write(common.dump({"torch": torch.__version__, "python": platform.python_version(), "backend": "gloo",
                             "cores": os.cpu_count(), "cases": with_codec,
                             "jobs": [entries[job.name] for job in JOBS if job.name in entries]}) + "\n")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--traces", action="store_true")
    what.add_argument("--times", action="store_true")
    parser.add_argument("--into", default=os.path.join(here, os.pardir))
    parser.add_argument("--tries", type=int, default=4, help="runs of which one trace is kept")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5, help="of a round")
    parser.add_argument("--only", default="", help="jobs whose name holds this")
    parser.add_argument("--add", action="store_true", help="to the steps that the file has")
    parser.add_argument("names", nargs="*", metavar="SET | FILE")
    arguments = parser.parse_args()
    if arguments.traces:
        for name, job in TRACES.items():
            if not arguments.names or name in arguments.names:
                trace(name, job, arguments.into, arguments.tries)
        return
    file = arguments.names[0] if arguments.names else os.path.join(here, os.pardir, "what_ifs.json")
    times(file, arguments.only, arguments.add, arguments.rounds, arguments.steps)


if __name__ == "__main__":
    main()
