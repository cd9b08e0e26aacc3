"""A four-stage pipeline under torch.distributed.pipelining's 1F1B schedule, Gloo on one machine.

Usage: python pipeline_1f1b.py [FOLDER]      (default ../pipeline_1f1b_4rank)

The work of a stage is a small matrix product and a set waiting time, because four stages share two
cores: FORWARD_MS for the forward pass of a micro-batch and BACKWARD_MS for its backward pass. A step
ends with an all_reduce of the squared gradient norm, as clipping needs it.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import common

MICROBATCHES = 8
ROWS = 16  # of one micro-batch
WIDTH = 128
FORWARD_MS = 4
BACKWARD_MS = 8


class StageWork(torch.autograd.Function):
    """Passes its input on after a set time, in both directions."""

    @staticmethod
    def forward(ctx, x):
        time.sleep(FORWARD_MS / 1e3)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(BACKWARD_MS / 1e3)
        return grad.clone()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return StageWork.apply(self.linear(x))


def program(rank, recorder):
    last = common.WORLD - 1
    module = Block()
    stage = PipelineStage(module, rank, common.WORLD, torch.device("cpu"))
    record_chunks(stage, recorder)
    pipeline = Schedule1F1B(stage, MICROBATCHES, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)

    def step(index):
        torch.manual_seed(10_000 + index)
        batch = torch.randn(MICROBATCHES * ROWS, WIDTH)
        if rank == 0:
            pipeline.step(batch)
        elif rank == last:
            pipeline.step(target=batch, losses=[])
        else:
            pipeline.step()
        norm = sum(p.grad.square().sum() for p in module.parameters())
        dist.all_reduce(norm)
        with recorder.span(kind="optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    return step


def record_chunks(stage, recorder):
    """Has the recorder note which micro-batch the stage works on, and when."""
    for kind, method in (("forward", "forward_one_chunk"), ("backward", "backward_one_chunk")):
        original = getattr(stage, method)

        def recording(chunk, *args, _kind=kind, _original=original, **kwargs):
            with recorder.span(kind=_kind, stage=stage.stage_index, microbatch=chunk):
                return _original(chunk, *args, **kwargs)

        setattr(stage, method, recording)


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, os.pardir, "pipeline_1f1b_4rank")
    common.generate(program, folder, "Schedule1F1B, one stage a rank")
