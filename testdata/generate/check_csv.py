"""Checks pipeline orders in CSV against PyTorch: by comparison, and by running them.

Usage: python check_csv.py compare CLASS=FILE...    with the order that PyTorch's schedule class makes
       python check_csv.py run FILE...              under PyTorch's runtime, with Gloo on this machine

compare takes ranks, micro-batches and stages from the file, CLASS is a name that PyTorch's
get_schedule_class knows, and idle cells don't count. run trains a small model for two steps, and expects
the losses and gradients that it has without a pipeline. Each file is one line of output that begins with
"same", "pass", "DIFFERENT" or "FAIL"; the exit status is 1 when there is any of the last two.
"""

import argparse
import csv
import datetime
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _Action, _PipelineScheduleRuntime

ROWS = 4  # of one micro-batch
WIDTH = 8
STEPS = 2
LIMIT = datetime.timedelta(seconds=60)  # after which a message that doesn't come is an error
COMPUTE = ("F", "B", "I", "W")


class Order:
    """A CSV file as PyTorch reads it."""

    def __init__(self, file):
        self.file = file
        with open(file, newline="") as f:
            self.rows = [[a for a in map(_Action.from_str, row) if a is not None] for row in csv.reader(f)]
        passes = [a for row in self.rows for a in flatten(row) if a.computation_type.value in COMPUTE]
        self.ranks = len(self.rows)
        self.stages = 1 + max(a.stage_index for a in passes)
        self.microbatches = 1 + max(a.microbatch_index for a in passes)
        lowered = any(a.computation_type.value.startswith("SEND") for row in self.rows for a in row)
        self.format = "compute_comms" if lowered else "compute_only"

    def stages_of(self, rank):
        return sorted({a.stage_index for a in flatten(self.rows[rank])})


def flatten(row):
    """The actions of a row, the parts of an overlapped pair one after the other."""
    for action in row:
        yield from action.sub_actions or (action,)


# Comparison


def compare(name, order):
    """What to say of an order that ought to be that of the class."""
    from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops

    size = (order.ranks, order.microbatches, order.stages // order.ranks)
    lowered = order.format == "compute_comms"
    try:
        expected = get_schedule_ops(name, *size, with_comms=lowered)
    except (AssertionError, ValueError) as refusal:
        return False, f"{name} has no such size: {refusal}"
    if name.lower() == "1f1b":
        expected[-1] = _shift_forwards(expected[-1])
    for rank, (ours, row) in enumerate(zip(order.rows, expected, strict=True)):
        # GPipe and 1F1B name the reduction of gradients even where nothing else is named but passes.
        theirs = [a for a in row if a is not None and (lowered or a.is_compute_op)]
        if ours != theirs:
            return False, f"{name}: rank {rank}, {difference(list(map(str, ours)), list(map(str, theirs)))}"
    return True, f"{name}, {order.ranks} ranks, {order.microbatches} micro-batches, {size[2]} stages a rank"


def _shift_forwards(row):
    """The last rank of 1F1B as it runs.

    PyTorch 2.15 shows its forward passes as 1 to m where it runs 0 to m-1.
    """
    forwards = [a for a in row if a is not None and a.computation_type.value == "F"]
    if forwards[0].microbatch_index == 0:
        return row
    return [a._replace(microbatch_index=a.microbatch_index - 1) if a in forwards else a for a in row]


def difference(ours, theirs):
    """Where two rows part, in words."""
    same = sorted(ours) == sorted(theirs)
    place = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    around = slice(max(0, place - 1), place + 6)
    which = "the same" if same else "other"
    return (f"action {place} of {len(ours)} (PyTorch {len(theirs)}, {which} actions): "
            f"{' '.join(ours[around])} | PyTorch {' '.join(theirs[around])}")


# Execution


def make_stage(number):
    """The layers of a stage, the same in any process."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(500 + number)
        return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))


def make_batch(order, step):
    torch.manual_seed(10_000 + step)
    return torch.randn(2, order.microbatches * ROWS, WIDTH)


def unpipelined(order, step):
    """Losses of the micro-batches and gradients by stage, without a pipeline."""
    stages = [make_stage(number) for number in range(order.stages)]
    inputs, targets = make_batch(order, step)
    outputs = nn.Sequential(*stages)(inputs)
    losses = [nn.functional.mse_loss(o, t) for o, t in zip(outputs.split(ROWS), targets.split(ROWS))]
    torch.stack(losses).mean().backward()
    return torch.stack(losses).detach(), [[p.grad for p in stage.parameters()] for stage in stages]


def pipelined(schedule, modules, order, step):
    """Runs a step; the losses, or None on ranks without the last stage."""
    inputs, targets = make_batch(order, step)
    for module in modules.values():
        module.zero_grad()
    losses = []
    arguments = (inputs,) if 0 in modules else ()
    targets = {"target": targets, "losses": losses} if order.stages - 1 in modules else {}
    schedule.step(*arguments, **targets)
    return torch.stack(losses).detach() if losses else None


def _rank_main(rank, file, store):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    order = Order(file)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=order.ranks,
                            timeout=LIMIT)
    modules = {number: make_stage(number) for number in order.stages_of(rank)}
    stages = [PipelineStage(m, number, order.stages, torch.device("cpu")) for number, m in modules.items()]
    schedule = _PipelineScheduleRuntime(stages, order.microbatches, loss_fn=nn.functional.mse_loss)
    schedule._load_csv(file, format=order.format)
    for step in range(STEPS):
        losses = pipelined(schedule, modules, order, step)
        expected, gradients = unpipelined(order, step)
        if losses is not None:
            torch.testing.assert_close(losses, expected)
        for number, module in modules.items():
            torch.testing.assert_close([p.grad for p in module.parameters()], gradients[number])
    dist.barrier()
    dist.destroy_process_group()


def run(order):
    """What to say of an order after PyTorch has run it."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            mp.start_processes(_rank_main, args=(order.file, os.path.join(scratch, "store")),
                               nprocs=order.ranks, start_method="fork")
        except mp.ProcessRaisedException as failure:
            return False, reason(str(failure))
    return True, (f"{order.ranks} ranks, {order.microbatches} micro-batches, {order.stages} stages, "
                  f"{order.format}: losses and gradients of {STEPS} steps as without a pipeline")


def reason(message):
    """The first error in the trace that a process left: the others follow from it."""
    lines = [line.strip() for line in message.splitlines()]
    errors = [line for line in lines if "Error: " in line or "Exception: " in line]
    return errors[0] if errors else lines[-1]


def report(file, words, result):
    """Prints the line of a file and gives whether it is good."""
    good, text = result
    print(f"{words[0] if good else words[1]} {os.path.basename(file)}: {text}", flush=True)
    return good


def check(what, item):
    if what == "run":
        return report(item, ("pass", "FAIL"), run(Order(item)))
    name, file = item.split("=", 1)
    return report(file, ("same", "DIFFERENT"), compare(name, Order(file)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("compare", "run"))
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    good = [check(arguments.what, item) for item in arguments.files]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
