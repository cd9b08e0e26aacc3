"""One small model under each schedule of torch.distributed.pipelining, Gloo on one machine.

Usage: python pipeline_schedules.py [--into FOLDER] [SET...]     (default: every set, beside this folder)

All schedules of one size run the same layers (pipeline_layers.py): two on a rank, in one stage or in two.
A step ends with an all_reduce of the squared gradient norm, as clipping needs it, and the optimizer; with
data parallelism the gradients of each stage go through an all_reduce of their own before that.
"""

import argparse
import dataclasses
import functools
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining
from torch.distributed.device_mesh import init_device_mesh

import common
import pipeline_layers

LAYERS_PER_RANK = 2
RECORDED = common.SHAPES

# Name here: class, stages of a rank, whether they lie in a V.
SCHEDULES = {
    "gpipe": (pipelining.ScheduleGPipe, 1, False),
    "1f1b": (pipelining.Schedule1F1B, 1, False),
    "interleaved": (pipelining.ScheduleInterleaved1F1B, 2, False),
    "bfs": (pipelining.ScheduleLoopedBFS, 2, False),
    "izb": (pipelining.ScheduleInterleavedZeroBubble, 2, False),
    "zbv": (pipelining.ScheduleZBVZeroBubble, 2, True),
}


@dataclasses.dataclass(frozen=True)
class Config:
    """A model, its size and a schedule."""

    schedule: str
    ranks: int  # of one pipeline
    replicas: int = 1  # pipelines
    microbatches: int = 8
    layer: str = "waiting"
    rows: int = 16  # of one micro-batch
    width: int = 128

    @property
    def name(self):
        """The name of the set."""
        size = f"p{self.ranks}" + (f"dp{self.replicas}" if self.replicas > 1 else "")
        layer = "" if self.layer == "waiting" else f"_{self.layer}"
        return f"pipeline_sched_{size}{layer}_{self.schedule}"

    @property
    def world(self):
        return self.ranks * self.replicas

    @property
    def loops(self):
        """Stages of one rank."""
        return SCHEDULES[self.schedule][1]

    @property
    def layers(self):
        return self.ranks * LAYERS_PER_RANK

    @property
    def stages(self):
        return self.ranks * self.loops

    def stages_of(self, place):
        """The stages of the rank at this place of the pipeline, in order."""
        if SCHEDULES[self.schedule][2]:
            return [place, self.stages - 1 - place]
        return list(range(place, self.stages, self.ranks))

    def layers_of(self, stage):
        each = self.layers // self.stages
        return range(stage * each, (stage + 1) * each)


def configs():
    """All sets: the waiting model in three sizes and with data parallelism, the computing one in one."""
    found = [Config(name, 4) for name in SCHEDULES]
    found += [Config(name, 2, microbatches=4) for name in SCHEDULES]
    found += [Config(name, 2, microbatches=4, layer="computing", rows=256, width=512) for name in SCHEDULES]
    found += [Config("1f1b", 8)]
    found += [Config(name, 2, replicas=2, microbatches=4, width=256) for name in ("1f1b", "bfs")]
    return found


class Trainer:
    """The part of one rank in the training of a model; step runs one step.

    span(**fields) is a context manager that covers each pass of a stage, or None.
    """

    def __init__(self, config, rank, span=None, mesh=None):
        self.config = config
        self.mesh = mesh or make_mesh(config)
        group = self.mesh["pp"].get_group()
        place = dist.get_rank(group)
        self.stages = [self._stage(number, group) for number in config.stages_of(place)]
        self.modules = [stage.submod for stage in self.stages]
        if span:
            for stage in self.stages:
                record_passes(stage, span)
        self.span = span
        kind, loops, _ = SCHEDULES[config.schedule]
        self.schedule = kind(self.stages if loops > 1 else self.stages[0], config.microbatches,
                             loss_fn=nn.functional.mse_loss)
        self.optimizer = torch.optim.SGD(nn.ModuleList(self.modules).parameters(), lr=0.01)
        self.first = 0 in config.stages_of(place)
        self.last = config.stages - 1 in config.stages_of(place)

    def _stage(self, number, group):
        return pipelining.PipelineStage(self.module(number), number, self.config.stages, torch.device("cpu"), group=group)

    def module(self, number):
        """The layers of a stage."""
        config = self.config
        return pipeline_layers.layers(config.layer, config.layers_of(number), config.width)

    def step(self, index):
        self.passes(index)
        self.reduce_gradients()
        norm = sum(p.grad.square().sum() for module in self.modules for p in module.parameters())
        dist.all_reduce(norm)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def passes(self, index):
        """The forward and backward passes of all micro-batches."""
        config = self.config
        torch.manual_seed(10_000 + index)
        batch = torch.randn(config.microbatches * config.rows, config.width)
        arguments = (batch,) if self.first else ()
        targets = {"target": batch, "losses": []} if self.last else {}
        self.schedule.step(*arguments, **targets)

    def reduce_gradients(self):
        """One all_reduce for each stage, between the ranks that hold it."""
        if self.config.replicas == 1:
            return
        group = self.mesh["dp"].get_group()
        for module in self.modules:
            gradients = [p.grad for p in module.parameters()]
            flat = torch.cat([g.flatten() for g in gradients])
            dist.all_reduce(flat, group=group)
            flat /= self.config.replicas
            for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients])):
                gradient.copy_(part.view_as(gradient))


def make_mesh(config):
    """Ranks of the same stage lie side by side."""
    return init_device_mesh("cpu", (config.ranks, config.replicas), mesh_dim_names=("pp", "dp"))


def record_passes(stage, span):
    """Has the recorder note which micro-batch the stage works on, in which pass, and when."""

    def wrap(method, kind):
        original = getattr(stage, method)

        @functools.wraps(original)
        def recording(chunk, *args, **kwargs):
            with span(kind=kind(kwargs), stage=stage.stage_index, microbatch=chunk):
                return original(chunk, *args, **kwargs)

        setattr(stage, method, recording)

    wrap("forward_one_chunk", lambda _: "forward")
    wrap("backward_one_chunk", lambda kwargs: "backward" if kwargs.get("full_backward", True) else "input")
    wrap("backward_weight_one_chunk", lambda _: "weight")


def program(config, rank, recorder):
    """What common.generate runs in each process."""
    return Trainer(config, rank, recorder.span).step


def about(config):
    kind = SCHEDULES[config.schedule][0].__name__
    return (f"{kind}, {config.ranks} ranks a pipeline, {config.replicas} pipelines, "
            f"{config.loops} stages a rank, "
            f"{config.microbatches} micro-batches, {config.layers} {config.layer} layers")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", default=os.path.join(here, os.pardir))
    parser.add_argument("sets", nargs="*", metavar="SET")
    arguments = parser.parse_args()
    for config in configs():
        if not arguments.sets or config.name in arguments.sets:
            settings = dataclasses.replace(RECORDED, world=config.world)
            common.generate(functools.partial(program, config), os.path.join(arguments.into, config.name),
                            about(config), settings)
            print(config.name, flush=True)


if __name__ == "__main__":
    main()
