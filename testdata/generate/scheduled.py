"""Jobs under the schedules of torch.distributed.pipelining, with a change: of layers, stages or links."""

import dataclasses

from torch import nn
from torch.utils import checkpoint

from network import Network
import pipeline_layers
import pipeline_schedules


@dataclasses.dataclass(frozen=True)
class Config:
    """What runs: a configuration of pipeline_schedules.py, and what is other than there."""

    name: str
    size: pipeline_schedules.Config
    change: str = ""  # in words
    layers_us: tuple = ()  # what each layer takes forward; () as their numbers say
    cut: tuple = ()  # the first layer of each stage; () in even parts
    slow: tuple = ()  # (stage, how many times as long its layers take)
    recompute: int = 0  # layers of each stage whose forward pass runs again before their backward pass
    network: Network = None

    @property
    def world(self):
        return self.size.world

    @property
    def about(self):
        text = f"Schedule1F1B, {self.size.ranks} ranks, {self.size.microbatches} micro-batches"
        if self.size.replicas > 1:
            text += f", {self.size.replicas} pipelines"
        return text + (", " + self.change if self.change else "")


class Trainer(pipeline_schedules.Trainer):
    """The part of one rank; step runs one step."""

    def __init__(self, config, rank, span=None):
        self.job = config
        super().__init__(config.size, rank, span)

    def module(self, number):
        job = self.job
        layers = nn.Sequential(*(self._layer(number, n) for n in self._layers_of(number)))
        if job.recompute:
            return Recomputing(layers[: job.recompute], layers[job.recompute :])
        return layers

    def _layers_of(self, stage):
        if not self.job.cut:
            return self.job.size.layers_of(stage)
        ends = [*self.job.cut[1:], len(self.job.layers_us)]
        return range(self.job.cut[stage], ends[stage])

    def _layer(self, stage, n):
        job = self.job
        pace = job.slow[1] if job.slow and job.slow[0] == stage else 1
        us = job.layers_us[n] if job.layers_us else pipeline_layers.forward_us(n)
        return pipeline_layers.TimedLayer(n, (job.size.width, job.size.width), pace * us, pace * us)


class Recomputing(nn.Module):
    """Keeps nothing of some layers but their input, and runs them again before their backward pass."""

    def __init__(self, again, others):
        super().__init__()
        self.again, self.others = again, others

    def forward(self, x):
        # Else PyTorch stops once it has the last tensor that is needed, before the layers' ends.
        with checkpoint.set_checkpoint_early_stop(False):
            x = checkpoint.checkpoint(self.again, x, use_reentrant=False)
        return self.others(x)
