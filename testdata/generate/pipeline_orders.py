"""Runs any order of a pipeline's passes, as PyTorch's schedules can't: autograd and messages of torch.distributed.

All receives of a step are posted at its start and sends are waited for at its end, so a message holds nobody
up but who needs it. The layers are those of pipeline_layers.py. A stage may lie on several ranks, each with
its own micro-batches.
"""

import collections
import concurrent.futures
import dataclasses
import time

import torch
import torch.distributed as dist
from torch import nn

from network import Network
import pipeline_layers

ROWS, WIDTH = 16, 128


@dataclasses.dataclass(frozen=True)
class Config:
    """What runs: rows[rank] lists its passes, (kind, stage, micro-batch) with kind F or B."""

    name: str
    about: str
    rows: tuple
    per_stage: int = 2  # layers
    part: float = 1.0  # of what a layer takes, for a micro-batch that is a slice
    local: bool = False  # stages learn alone: a backward pass needs no gradient, and sends none
    copy_ms: float = 0  # what takes away and back what a forward pass keeps, one after the other each way
    fill_ms: float = 0  # length of the pieces of other work that run between passes
    network: Network = None

    @property
    def world(self):
        return len(self.rows)

    @property
    def order(self):
        return [[f"{stage}{kind}{mb}" for kind, stage, mb in row] for row in self.rows]


class Trainer:
    """The part of one rank; step runs one step."""

    def __init__(self, config, rank):
        self.config, self.row = config, config.rows[rank]
        self.place = {p: r for r, row in enumerate(config.rows) for p in row}
        self.last = max(stage for _, stage, _ in self.place)
        self.stages = {stage: self._stage(stage) for stage in sorted({s for _, s, _ in self.row})}
        self.optimizer = torch.optim.SGD(nn.ModuleList(self.stages.values()).parameters(), lr=0.01)
        self.copies = Copies(config.copy_ms) if config.copy_ms else None
        self.pieces = collections.Counter()  # of other work, by the pass they run before
        self.gaps = {}
        self.groups = self._copies_of_stages()

    def _stage(self, stage):
        config, layers = self.config, []
        for n in range(stage * config.per_stage, (stage + 1) * config.per_stage):
            layers.append(pipeline_layers.TimedLayer(n, (WIDTH, WIDTH), config.part * pipeline_layers.forward_us(n),
                                                     config.part * pipeline_layers.half_backward_us(n)))
        return nn.Sequential(*layers)

    def _copies_of_stages(self):
        """A group for each stage that several ranks hold."""
        holders = collections.defaultdict(set)
        for (_, stage, _), rank in self.place.items():
            holders[stage].add(rank)
        made = {}
        for stage, ranks in sorted(holders.items()):
            ranks = tuple(sorted(ranks))
            if len(ranks) > 1 and ranks not in made:
                made[ranks] = dist.new_group(list(ranks))
        return {stage: made[tuple(sorted(ranks))] for stage, ranks in holders.items()
                if len(ranks) > 1 and stage in self.stages}

    def step(self, index):
        self.kept, self.arriving, self.sent = {}, {}, []
        self.batch = torch.randn(ROWS, WIDTH)
        for p in self.row:
            self._post(p)
        for n, (kind, stage, mb) in enumerate(self.row):
            start = time.perf_counter_ns()
            given = self._take((kind, stage, mb), n)
            self.gaps[n] = time.perf_counter_ns() - start
            following = self.row[n + 1] if n + 1 < len(self.row) else None
            if self.copies and following and following[0] == "B":
                self.copies.fetch(following[1:])
            (self._forward if kind == "F" else self._backward)(stage, mb, given)
        start = time.perf_counter_ns()
        self._fill(len(self.row))
        for work in self.sent:
            work.wait()
        for stage in sorted(self.groups):
            flat = torch.cat([p.grad.flatten() for p in self.stages[stage].parameters()])
            dist.all_reduce(flat, group=self.groups[stage])
        norm = sum(p.grad.square().sum() for p in nn.ModuleList(self.stages.values()).parameters())
        dist.all_reduce(norm)
        self.gaps[len(self.row)] = time.perf_counter_ns() - start
        self.optimizer.step()
        self.optimizer.zero_grad()

    def fill(self, gaps):
        """Has pieces of other work run in these gaps between passes, by place in the row, ns."""
        for n, ns in gaps.items():
            self.pieces[n] = int(ns // (1e6 * self.config.fill_ms))

    def _fill(self, n):
        for _ in range(self.pieces[n]):
            time.sleep(self.config.fill_ms / 1e3)

    # Messages: of each pass that needs what another rank makes.

    def _needs(self, p):
        kind, stage, mb = p
        if kind == "F":
            return ("F", stage - 1, mb) if stage > 0 else None
        return ("B", stage + 1, mb) if stage < self.last and not self.config.local else None

    def _tag(self, p):
        kind, stage, mb = p
        return 2 * (1000 * stage + mb) + (kind == "B")

    def _post(self, p):
        needed = self._needs(p)
        if needed and self.place[needed] != self.place[p]:
            buffer = torch.empty(ROWS, WIDTH)
            self.arriving[p] = buffer, dist.irecv(buffer, self.place[needed], tag=self._tag(needed))

    def _take(self, p, n):
        """What a pass needs, once it is there; meanwhile pieces of other work run."""
        self._fill(n)
        if p in self.arriving:
            buffer, work = self.arriving[p]
            work.wait()
            return buffer
        return self.kept.pop(("made", p), None)

    def _give(self, p, tensor):
        """Hands over what a pass made to the one that needs it."""
        kind, stage, mb = p
        to = (kind, stage + 1 if kind == "F" else stage - 1, mb)
        if to not in self.place or self._needs(to) is None:
            return
        if self.place[to] == self.place[p]:
            self.kept["made", to] = tensor
        else:
            self.sent.append(dist.isend(tensor, self.place[to], tag=self._tag(p)))

    # Passes

    def _forward(self, stage, mb, given):
        x = self.batch if given is None else given
        x = x.detach().requires_grad_(stage > 0)
        y = self.stages[stage](x)
        self.kept[stage, mb] = x, y
        self._give(("F", stage, mb), y.detach())
        if self.copies:
            self.copies.leave((stage, mb))

    def _backward(self, stage, mb, gradient):
        if self.copies:
            self.copies.wait((stage, mb))
        x, y = self.kept.pop((stage, mb))
        if gradient is None:
            y.square().mean().backward()
        else:
            y.backward(gradient)
        if stage > 0:
            self._give(("B", stage, mb), x.grad)


class Copies:
    """Stands for copies to another memory and back: waits of a set time, one after the other each way.

    What has not begun to leave when it is fetched stays; the pass waits for what is on its way.
    """

    def __init__(self, ms):
        self.seconds = ms / 1e3
        self.out, self.back = (concurrent.futures.ThreadPoolExecutor(1) for _ in range(2))
        self.leaving, self.coming = {}, {}

    def leave(self, what):
        self.leaving[what] = self.out.submit(time.sleep, self.seconds)

    def fetch(self, what):
        left = self.leaving.pop(what, None)
        if left is not None and left.done():
            self.coming[what] = self.back.submit(time.sleep, self.seconds)
        elif left is not None:
            left.cancel()

    def wait(self, what):
        coming = self.coming.pop(what, None)
        if coming is not None:
            coming.result()


# Orders


def alternating(ranks, microbatches, warm_up):
    """Forward passes ahead, then one backward and one forward pass in turn, then the other backward ones."""
    rows = []
    for rank in range(ranks):
        ahead = min(microbatches, warm_up(rank))
        row = [("F", rank, mb) for mb in range(ahead)]
        for mb in range(microbatches):
            row.append(("B", rank, mb))
            if ahead + mb < microbatches:
                row.append(("F", rank, ahead + mb))
        rows.append(tuple(row))
    return tuple(rows)


def one_f_one_b(ranks, microbatches):
    return alternating(ranks, microbatches, lambda rank: ranks - rank)


def eager(ranks, microbatches):
    """1F1B with about twice as many forward passes ahead."""
    return alternating(ranks, microbatches, lambda rank: 2 * (ranks - rank) - 1)


def local(ranks, microbatches):
    """Each backward pass right after its forward pass."""
    return tuple(tuple((kind, rank, mb) for mb in range(microbatches) for kind in "FB") for rank in range(ranks))


def sliced(rows, slices):
    """Each pass in slices, which follow each other; backward in reverse."""
    cut = []
    for row in rows:
        passes = []
        for kind, stage, mb in row:
            parts = range(slices) if kind == "F" else reversed(range(slices))
            passes += [(kind, stage, mb * slices + part) for part in parts]
        cut.append(tuple(passes))
    return tuple(cut)


def without_a_rank(microbatches):
    """Two pipelines of two stages, of which one has lost its last rank: the other's does the work of both."""
    both = one_f_one_b(2, microbatches)
    first = [tuple((kind, 0, 2 * mb + pipeline) for kind, _, mb in both[0]) for pipeline in range(2)]
    second = tuple((kind, 1, 2 * mb + pipeline) for kind, _, mb in both[1] for pipeline in range(2))
    return (*first, second)


def parse(rows):
    """Rows as mixdown writes them: 0F1 is the forward pass of micro-batch 1 in stage 0."""
    made = []
    for row in rows:
        passes = []
        for text in row.split():
            kind = "F" if "F" in text else "B"
            stage, mb = text.split(kind)
            passes.append((kind, int(stage), int(mb)))
        made.append(tuple(passes))
    return tuple(made)
