"""Sharded data parallelism with fully_shard (FSDP2), four ranks, Gloo on one machine.

Usage: python fsdp2.py [FOLDER]      (default ../fsdp2_4rank; a second set goes to FOLDER_bare)

Each layer is a parameter group of its own, and what is left (the input and output layers) is the
root's. A step is forward, backward, clipping by the global norm, and the optimizer.
"""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import common

ROWS = 8
WIDTH = 64
LAYERS = 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(self.up(x).relu())


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(WIDTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def program(rank, recorder):
    torch.manual_seed(7)
    model = Model()
    mesh = init_device_mesh("cpu", (common.WORLD,), mesh_dim_names=("dp",))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)

    def step(index):
        torch.manual_seed(10_000 + 100 * index + rank)
        x = torch.randn(ROWS, WIDTH)
        with recorder.span(kind="forward"):
            loss = model(x).square().mean()
        with recorder.span(kind="backward"):
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        norm.full_tensor()
        with recorder.span(kind="optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    return step


if __name__ == "__main__":
    common.generate_both(program, "fsdp2_4rank", "fully_shard (FSDP2)")
