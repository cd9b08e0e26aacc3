"""Writes PyTorch's own pipeline orders, with communication, for many shapes."""

import os
import sys

from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops

out, classes = sys.argv[1], sys.argv[2].split(",")
os.makedirs(out, exist_ok=True)
for cls in classes:
    loops = (2,) if cls in ("ZBVZeroBubble", "DualPipeV") else (2, 3)
    for ranks in (1, 2, 3, 4):
        for microbatches in range(1, 13):
            for v in loops:
                try:
                    rows = get_schedule_ops(cls, ranks, microbatches, num_stages_per_rank=v, with_comms=True)
                except (ValueError, AssertionError):
                    continue  # a shape that the class refuses
                with open(f"{out}/{cls}-{ranks}-{microbatches}-{v}.csv", "w") as f:
                    for row in rows:
                        f.write(",".join("" if a is None else str(a) for a in row) + "\n")
