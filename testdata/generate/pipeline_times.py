"""Step times of the configurations of pipeline_schedules.py, without and with the profiler.

Usage: python pipeline_times.py [--starts N] [--rounds N] [--steps N] [--patience SECONDS] [--only TEXT]
                                [FILE]                          (default ../pipeline_times.json)

All schedules of one model and size run in the same processes, a few steps of each in turn, round after
round; and the processes start several times, each time with the schedules in another order. So whatever
else the machine does hits all of them alike. Before each step rank 0 waits a while for other programs to be
quiet, if they are not. The clock is one for all processes of a machine: a step lasts from the first rank's
start to the last rank's end, and every rank starts after a barrier.
"""

import argparse
import collections
import contextlib
import dataclasses
import itertools
import json
import os
import platform
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.profiler import ProfilerActivity, profile

import common
import pipeline_layers
import pipeline_schedules

WARM_UP = 5
KINDS = ("clean", "profiled")
PROFILED = 4  # steps of a round with the profiler on, after one that does not count


class Quiet:
    """Waits for the machine to be idle, until its patience is used up."""

    IDLE = 0.75  # of all cores
    LOOK_S = 0.06

    def __init__(self, patience_s):
        self.patience_s = patience_s

    def wait(self):
        while self._idle() < self.IDLE and self.patience_s > 0:
            self.patience_s -= self.LOOK_S

    def _idle(self):
        before = self._ticks()
        time.sleep(self.LOOK_S)
        spent = [b - a for a, b in zip(before, self._ticks())]
        return spent[3] / max(1, sum(spent))

    @staticmethod
    def _ticks():
        """Time of all cores by what they did; the fourth is nothing."""
        with open("/proc/stat") as f:
            return [int(field) for field in f.readline().split()[1:9]]


class Passes:
    """Notes the passes of a rank's stages: kind, stage, micro-batch, start and end."""

    def __init__(self):
        self.noted = []

    @contextlib.contextmanager
    def span(self, kind, stage, microbatch):
        start = time.perf_counter_ns()
        yield
        self.noted.append((kind, stage, microbatch, start, time.perf_counter_ns()))

    def take(self):
        noted, self.noted = self.noted, []
        return noted


def timed_step(trainer, passes, quiet, index):
    """Runs one step after a barrier and says when it started and ended, and when its passes did."""
    if quiet:
        quiet.wait()
    dist.barrier()
    passes.take()
    start = time.perf_counter_ns()
    trainer.step(index)
    return {"start": start, "end": time.perf_counter_ns(), "passes": passes.take()}


def clean_steps(trainer, passes, quiet, count):
    return [timed_step(trainer, passes, quiet, index) for index in range(count)]


def profiled_steps(trainer, passes, quiet, count):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True):
        return clean_steps(trainer, passes, quiet, count + 1)[1:]


def measure(rank, configs, rounds, steps, patience_s):
    """Runs all configurations in turn; the steps of this rank by the name of the configuration."""
    quiet = Quiet(patience_s) if rank == 0 else None
    trainers = []
    for config in configs:
        passes = Passes()
        trainers.append((config.name, pipeline_schedules.Trainer(config, rank, passes.span), passes))
    for _, trainer, passes in trainers:
        clean_steps(trainer, passes, None, WARM_UP)
    found = {config.name: {"clean": [], "profiled": []} for config in configs}
    for _ in range(rounds):
        for name, trainer, passes in trainers:
            found[name]["clean"] += clean_steps(trainer, passes, quiet, steps)
            found[name]["profiled"] += profiled_steps(trainer, passes, quiet, PROFILED)
    return found


def _rank_main(rank, scratch, world, configs, *arguments):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{scratch}/store", rank=rank, world_size=world)
    found = measure(rank, configs, *arguments)
    with open(os.path.join(scratch, f"{rank}.json"), "w") as f:
        json.dump(found, f)
    dist.barrier()
    dist.destroy_process_group()


def start(configs, *arguments):
    """Starts the processes of one size; by configuration and kind, its steps, each a tuple of ranks."""
    world = configs[0].world
    with tempfile.TemporaryDirectory() as scratch:
        mp.start_processes(_rank_main, args=(scratch, world, configs, *arguments), nprocs=world,
                           start_method="spawn")
        ranks = []
        for rank in range(world):
            with open(os.path.join(scratch, f"{rank}.json")) as f:
                ranks.append(json.load(f))
    return {name: {kind: list(zip(*(rank[name][kind] for rank in ranks))) for kind in KINDS}
            for name in ranks[0]}


# What the steps of all ranks say


def wall_ns(step):
    return max(rank["end"] for rank in step) - min(rank["start"] for rank in step)


def spread(values):
    """Median and quartiles; the lower one and the least are what other programs disturbed least."""
    low, middle, high = (round(v) for v in statistics.quantiles(values, n=4))
    return {"median_ns": middle, "iqr_ns": high - low, "lower_quartile_ns": low, "min_ns": min(values),
            "steps": len(values)}


def median(values):
    return round(statistics.median(values)) if values else None


def summarise_passes(config, steps):
    """Median lengths of the passes, and of what lies between them."""
    lengths = collections.defaultdict(list)
    lags = collections.defaultdict(list)
    for step in steps:
        for replica in range(config.replicas):
            _add_step(step[replica :: config.replicas], lengths, lags)
    passes = {f"{stage} {kind}": median(values) for (stage, kind), values in sorted(lengths.items())}
    return {"passes_ns": passes, **{f"{name}_ns": median(lags[name]) for name in LAGS}}


# Between the passes: from the start of the step to its first pass; from the end of the pass before on the
# same rank, where that came after what it needed from another rank, and from the end of what it needed,
# where that came later; the same with forward passes of the first micro-batch, for which all ranks wait
# idly; from the last pass of all ranks to the end of the step.
LAGS = ("head", "after_own", "after_other", "first_hop", "tail")


def _add_step(ranks, lengths, lags):
    ends = {}
    for rank in ranks:
        for kind, stage, microbatch, _, end in rank["passes"]:
            ends[kind, stage, microbatch] = end
    for rank in ranks:
        own = {stage for _, stage, *_ in rank["passes"]}
        before = None
        for kind, stage, microbatch, begin, end in rank["passes"]:
            lengths[stage, kind].append(end - begin)
            needed = _needed(kind, stage, microbatch, ends, own)
            if needed is not None and (before is None or needed > before):
                lags["after_other"].append(begin - needed)
                if before is None:
                    lags["first_hop"].append(begin - needed)
            elif before is not None:
                lags["after_own"].append(begin - before)
            else:
                lags["head"].append(begin - rank["start"])
            before = end
    last = max(entry[4] for rank in ranks for entry in rank["passes"])
    lags["tail"].append(max(rank["end"] for rank in ranks) - last)


def _needed(kind, stage, microbatch, ends, own):
    """When the pass of another rank ended that this one needs, if there is one."""
    if kind == "forward":
        wanted = [("forward", stage - 1)]
    elif kind in ("backward", "input"):
        wanted = [("backward", stage + 1), ("input", stage + 1)]
    else:
        return None
    keys = ((k, s, microbatch) for k, s in wanted if s not in own)
    return next((ends[key] for key in keys if key in ends), None)


def describe(config):
    """What a configuration is, in the words of testdata/README.md."""
    return {"schedule": config.schedule, "class": pipeline_schedules.SCHEDULES[config.schedule][0].__name__,
            "ranks": config.ranks, "replicas": config.replicas, "loops": config.loops,
            "microbatches": config.microbatches, "layer": config.layer,
            "message_bytes": 4 * config.rows * config.width,
            "layer_forward_ns": [1000 * pipeline_layers.forward_us(n) for n in range(config.layers)]
            if config.layer == "waiting" else None}


def summarise(config, starts):
    """The entry of one configuration in the file."""
    entry = {"name": config.name, **describe(config)}
    for kind in KINDS:
        walls = [[wall_ns(step) for step in found[kind]] for found in starts]
        entry[kind] = {**spread(list(itertools.chain(*walls))),
                       "start_medians_ns": [median(w) for w in walls], "starts_ns": walls}
    entry.update(summarise_passes(config, [step for found in starts for step in found["clean"]]))
    return entry


def sizes(only):
    """The configurations that run in the same processes."""
    chosen = [config for config in pipeline_schedules.configs() if only in config.name]
    groups = collections.defaultdict(list)
    for config in chosen:
        groups[dataclasses.replace(config, schedule="")].append(config)
    return list(groups.values())


def write(file, measured):
    """Writes what has been measured so far."""
    entries = [summarise(config, measured[config.name]) for config in pipeline_schedules.configs()
               if config.name in measured]
    with open(file, "w") as f:
        f.write(common.dump({"torch": torch.__version__, "python": platform.python_version(),
                             "backend": "gloo", "cores": os.cpu_count(),
                             "configurations": entries}) + "\n")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10, help="clean steps of a round")
    parser.add_argument("--patience", type=float, default=30, metavar="SECONDS",
                        help="to wait for quiet, in all steps of one start of one size")
    parser.add_argument("--only", default="", help="configurations whose name holds this")
    target = os.path.join(here, os.pardir, "pipeline_times.json")
    parser.add_argument("file", nargs="?", default=target)
    arguments = parser.parse_args()
    measured = collections.defaultdict(list)
    for number in range(arguments.starts):
        for configs in sizes(arguments.only):
            turn = number % len(configs)
            in_turn = configs[turn:] + configs[:turn]
            found_all = start(in_turn, arguments.rounds, arguments.steps, arguments.patience)
            for name, found in found_all.items():
                measured[name].append(found)
                walls = [wall_ns(step) for step in found["clean"]]
                print(f"{name} start {number}: {statistics.median(walls) / 1e6:.1f} ms", flush=True)
            write(arguments.file, measured)


if __name__ == "__main__":
    main()
