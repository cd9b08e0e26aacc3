"""DeepSpeed's pipeline engine with the comms logger, two stages, Gloo on one machine.

Usage: python deepspeed_pipe.py [FOLDER]     (default ../deepspeed_pipe_2rank; a second set goes to FOLDER_bare)

Four micro-batches a step. The first and the last layer share their weight, so its gradient is reduced
over both stages. The second set has neither shapes nor stacks, and the debug form of the comms logger.
"""

import functools

import torch
from torch import nn

import common
import ds_common

import deepspeed  # after ds_common, which says that there is no GPU
from deepspeed.pipe import LayerSpec, PipelineModule, TiedLayerSpec
from deepspeed.runtime.pipe import engine as pipe

MICROBATCHES = 4
ROWS = 4
WIDTH = 64


def program(rank, recorder, debug):
    ds_common.start(rank, recorder)
    torch.manual_seed(7)
    layers = [TiedLayerSpec("ends", nn.Linear, WIDTH, WIDTH)]
    for _ in range(2):
        layers += [LayerSpec(nn.Linear, WIDTH, WIDTH), LayerSpec(nn.ReLU)]
    layers += [TiedLayerSpec("ends", nn.Linear, WIDTH, WIDTH)]
    module = PipelineModule(layers, num_stages=ds_common.WORLD, loss_fn=nn.functional.mse_loss,
                            partition_method="uniform")
    record_instructions(recorder)
    engine, _, _, _ = deepspeed.initialize(
        model=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.01),
        config=ds_common.config(debug, gradient_accumulation_steps=MICROBATCHES),
    )

    def step(index):
        torch.manual_seed(10_000 + index)
        data = [(torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)) for _ in range(MICROBATCHES)]
        with recorder.span(kind="train_batch"):
            engine.train_batch(iter(data))

    return ds_common.logged(step, recorder)


def record_instructions(recorder):
    """Has the recorder note each instruction of the pipeline schedule; the engine finds them in a table."""
    table = pipe.PipelineEngine._INSTRUCTION_MAP
    for instruction, method in list(table.items()):

        def recording(self, *args, _name=instruction.__name__, _method=method, **kwargs):
            if recorder.current is None:
                return _method(self, *args, **kwargs)
            with recorder.span(kind=_name, stage=self.stage_id, **kwargs):
                return _method(self, *args, **kwargs)

        table[instruction] = recording


if __name__ == "__main__":
    folder = common.target("deepspeed_pipe_2rank")
    for suffix, base, debug in ("", common.FULL, False), ("_bare", common.BARE, True):
        common.generate(functools.partial(program, debug=debug), folder + suffix,
                        "DeepSpeed's pipeline engine" + suffix.replace("_", ", "),
                        ds_common.settings(base), ds_common.versions())
