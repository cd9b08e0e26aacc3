"""Sharded data parallelism with FullyShardedDataParallel (FSDP1), four ranks, Gloo on one machine.

Usage: python fsdp1.py [FOLDER]      (default ../fsdp1_4rank; a second set goes to FOLDER_bare)

The model and the step are those of fsdp2.py.
"""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

import common
import fsdp2


def program(rank, recorder):
    torch.manual_seed(7)
    model = FullyShardedDataParallel(fsdp2.Model(), auto_wrap_policy=ModuleWrapPolicy({fsdp2.Layer}),
                                     device_id=torch.device("cpu"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)

    def step(index):
        torch.manual_seed(10_000 + 100 * index + rank)
        x = torch.randn(fsdp2.ROWS, fsdp2.WIDTH)
        with recorder.span(kind="forward"):
            loss = model(x).square().mean()
        with recorder.span(kind="backward"):
            loss.backward()
        model.clip_grad_norm_(1.0)
        with recorder.span(kind="optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    return step


if __name__ == "__main__":
    common.generate_both(program, "fsdp1_4rank", "FullyShardedDataParallel (FSDP1)", common.SHAPES)
