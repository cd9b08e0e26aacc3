"""A data-parallel job whose layers wait a set time: DistributedDataParallel over links of a set speed.

Every rank trains the same eight layers. While the gradients of one bucket are on their way the backward
pass goes on, so that communication is partly hidden, and takes a little longer than what hides it.
"""

import contextlib
import dataclasses
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from network import Network
import pipeline_layers

# Width in and out. The weights are 128 KiB, then 512, 512, 256, 256, 512, 512, 512: buckets of 1 MiB, the last one small.
SHAPES = [(64, 512), (512, 256), (256, 512), (512, 128), (128, 512), (512, 256), (256, 512), (512, 256)]
FORWARD_US = 7000
HALF_BACKWARD_US = 9000
ROWS = 4
MBIT = 250  # of each rank


@dataclasses.dataclass(frozen=True)
class Config:
    """What runs."""

    name: str
    world: int = 4
    network: Network = Network(mbit=MBIT)
    bucket_mib: float = 1
    reduce: str = "beside"  # what becomes of a bucket: beside, at once, late, half, none
    slow: tuple = ()  # (rank, how many times as long its layers take)

    @property
    def about(self):
        """In words."""
        text = (f"DistributedDataParallel, {self.world} ranks, buckets of {self.bucket_mib} MiB, "
                f"links of {self.network.mbit} Mbit/s")
        for a, b, mbit in self.network.slower:
            text += f", {mbit} Mbit/s between ranks {a} and {b}"
        text += {"beside": "", "at once": ", each all_reduce waited for at once", "half": ", fp16_compress_hook",
                 "late": ", the all_reduces waited for at the end of the step", "none": ", no_sync"}[self.reduce]
        for rank, factor in [self.slow] if self.slow else []:
            text += f", layers of rank {rank} take {factor} times as long"
        return text


class Trainer:
    """The part of one rank; step runs one step. span(**fields) is a context manager that covers its parts."""

    def __init__(self, config, rank, span=None):
        pace = config.slow[1] if config.slow and config.slow[0] == rank else 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            model = nn.Sequential(*(pipeline_layers.TimedLayer(n, shape, FORWARD_US * pace, HALF_BACKWARD_US * pace)
                                    for n, shape in enumerate(SHAPES)))
        self.model = DistributedDataParallel(model, bucket_cap_mb=config.bucket_mib)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        self.without = self.model.no_sync if config.reduce == "none" else contextlib.nullcontext
        self.late = []
        hook = {"at once": self._at_once, "late": self._later, "half": default_hooks.fp16_compress_hook}
        if config.reduce in hook:
            self.model.register_comm_hook(None, hook[config.reduce])
        self.batch = torch.randn(ROWS, SHAPES[0][0])
        self.span = span or (lambda **_: contextlib.nullcontext())

    def _at_once(self, _, bucket):
        dist.all_reduce(bucket.buffer())
        return _done(bucket.buffer())

    def _later(self, _, bucket):
        self.late.append(dist.all_reduce(bucket.buffer(), async_op=True))
        return _done(bucket.buffer())

    def step(self, _):
        with self.without():
            with self.span(kind="forward"):
                loss = self.model(self.batch).square().mean()
            with self.span(kind="backward"):
                loss.backward()
        with self.span(kind="optimizer"):
            self.optimizer.step()
            self.optimizer.zero_grad()
        for work in self.late:
            work.wait()
        self.late.clear()


def _done(value):
    future = Future()
    future.set_result(value)
    return future


def codec():
    """Bytes a second at which fp16_compress_hook makes a bucket smaller, and larger again."""
    bucket = torch.randn(256 * 1024)
    seconds = [[], []]
    for _ in range(30):
        start = time.perf_counter()
        half = bucket.to(torch.float16).div_(4)
        middle = time.perf_counter()
        bucket.copy_(half)
        seconds[0].append(middle - start)
        seconds[1].append(time.perf_counter() - middle)
    return [round(bucket.nbytes / sorted(times)[len(times) // 2]) for times in seconds]
