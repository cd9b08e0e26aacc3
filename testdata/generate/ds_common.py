"""Shared by the DeepSpeed generators: the engine's environment, its configuration, and its comms logger."""

import json
import os
import sys

# Before deepspeed is imported.
os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from deepspeed.runtime.config import DeepSpeedConfig  # noqa: E402
from deepspeed.utils.logging import set_log_level_from_string  # noqa: E402

import common  # noqa: E402

WORLD = 2
FIRST_KEPT = 2  # the index of the first recorded step, with one step skipped and one of warm-up


def start(rank, recorder):
    """Tells DeepSpeed what a launcher would, and sends the output of rank 0 to comms.log.

    The ranks are already connected; init_distributed takes over what it finds.
    """
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(WORLD))
    log = os.path.join(recorder.extra, "comms.log") if rank == 0 else os.devnull
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, sys.stdout.fileno())
    sys.stdout.reconfigure(line_buffering=True)
    # The verbose lines of the comms logger are of level INFO, and only warnings are shown by default.
    set_log_level_from_string("info")
    # The engine prints its whole configuration at this level, some 300 lines.
    DeepSpeedConfig.print = lambda *_: None
    deepspeed.init_distributed("gloo")


def config(debug, **more):
    return {
        "train_micro_batch_size_per_gpu": 4,
        "steps_per_print": 1,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "gradient_clipping": 1.0,
        "comms_logger": {"enabled": True, "verbose": True, "prof_all": True, "debug": debug},
        **more,
    }


def logged(step, recorder):
    """Has the comms logger count the recorded steps alone, and write its summaries after the last of them.

    Its verbose lines in comms.log are those of the whole run.
    """
    from deepspeed.comm.comm import comms_logger

    def counted(index):
        if index == FIRST_KEPT:
            comms_logger.reset_data()
        step(index)

    def finish():
        sys.stdout.flush()
        raw = {op: {size: {"count": n, "latency_ms": latency, "algbw_gbps": alg, "busbw_gbps": bus}
                    for size, (n, latency, alg, bus) in sizes.items()}
               for op, sizes in comms_logger.get_raw_data().items()}
        # The straggler analysis makes calls of its own, and would count them.
        comms_logger.prof_all = False
        mine = {"log_all": None, "raw": raw}
        if dist.get_rank() == 0:
            print("log_all:")
        mine["log_all"] = comms_logger.log_all(print_log=dist.get_rank() == 0, return_dict=True)
        if dist.get_rank() == 0:
            print("log_all, show_straggler:")
        deepspeed.comm.log_summary(show_straggler=True)
        mine["show_straggler"] = comms_logger.log_all(print_log=False, show_straggler=True, return_dict=True)
        sys.stdout.flush()
        ranks = [None] * WORLD
        dist.all_gather_object(ranks, mine)
        if dist.get_rank() == 0:
            with open(os.path.join(recorder.extra, "comms.json"), "w") as f:
                json.dump({f"rank{rank}": data for rank, data in enumerate(ranks)}, f, indent=1)

    counted.finish = finish
    return counted


def zero(rank, recorder, stage, debug, half):
    """Trains a small model under ZeRO, with two accumulated micro-batches a step under ZeRO-2."""
    start(rank, recorder)
    torch.manual_seed(7)
    width = 64
    model = torch.nn.Sequential(
        torch.nn.Linear(width, 2 * width), torch.nn.ReLU(), torch.nn.Linear(2 * width, width)
    )
    # The stacks of ZeRO-3 are most of what these sets take.
    microbatches = 2 if stage == 2 else 1
    settings = {"stage": stage, "overlap_comm": False, "reduce_bucket_size": 10_000, "allgather_bucket_size": 10_000}
    if stage == 3:
        settings.update(stage3_param_persistence_threshold=200, stage3_prefetch_bucket_size=9_000,
                        stage3_max_live_parameters=20_000, stage3_max_reuse_distance=20_000)
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False),
        config=config(debug, gradient_accumulation_steps=microbatches, zero_optimization=settings,
                      bf16={"enabled": half}, wall_clock_breakdown=True),
    )

    def step(index):
        for micro in range(microbatches):
            torch.manual_seed(10_000 + 100 * index + 10 * micro + rank)
            x = torch.randn(4, width, dtype=torch.bfloat16 if half else torch.float32)
            with recorder.span(kind="forward", microbatch=micro):
                loss = engine(x).square().mean()
            with recorder.span(kind="backward", microbatch=micro):
                engine.backward(loss)
            with recorder.span(kind="optimizer", microbatch=micro):
                engine.step()

    return logged(step, recorder)


def versions():
    return {"deepspeed": deepspeed.__version__}


def settings(base):
    return common.dataclasses.replace(base, world=WORLD)
