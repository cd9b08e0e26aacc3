"""DeepSpeed ZeRO-2 and ZeRO-3 with the comms logger, two ranks, Gloo on one machine.

Usage: python deepspeed_zero.py [FOLDER]

FOLDER (default ..) receives deepspeed_zero2_2rank and deepspeed_zero3_2rank, and one _bare set for each,
without shapes and stacks and with the debug form of the comms logger. ZeRO-2 trains in float32, ZeRO-3 in
bfloat16. A step of ZeRO-2 is two micro-batches of forward, backward and engine.step(), of which the
second updates; a step of ZeRO-3 is one.
"""

import functools
import os

import common
import ds_common

if __name__ == "__main__":
    for stage in 2, 3:
        folder = os.path.join(common.target("."), f"deepspeed_zero{stage}_2rank")
        for suffix, base, debug in ("", common.FULL, False), ("_bare", common.BARE, True):
            program = functools.partial(ds_common.zero, stage=stage, debug=debug, half=stage == 3)
            common.generate(program, folder + suffix, f"DeepSpeed ZeRO-{stage}{suffix.replace('_', ', ')}",
                            ds_common.settings(base), ds_common.versions())
