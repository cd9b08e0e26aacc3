"""Coalesced collectives, four ranks, Gloo on one machine.

Usage: python coalesced.py [FOLDER]      (default ../coalesced_4rank; a second set goes to FOLDER_bare)

A step makes every call of CALLS that this build of PyTorch can do with Gloo, and those of the coalescing
manager also in a group of two. What it can't do is found out before the first step and named in
unsupported.json with what PyTorch said.
"""

import json
import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.distributed_c10d as c10d

import common

SIZES = [8, 24, 40]  # elements of the tensors of a coalesced call on each rank, all divisible by 4


def ones(factor=1):
    return [torch.ones(int(n * factor)) for n in SIZES]


def all_reduce_coalesced(group):
    dist.all_reduce_coalesced(ones(), group=group)


def all_reduce_coalesced_async(group):
    dist.all_reduce_coalesced(ones(), group=group, async_op=True).wait()


def all_gather_coalesced(group):
    world = dist.get_world_size(group)
    c10d.all_gather_coalesced([ones() for _ in range(world)], ones(), group=group)


def manager_all_reduce(group):
    with c10d._coalescing_manager(group):
        for t in ones():
            dist.all_reduce(t, group=group)


def manager_all_reduce_async(group):
    with c10d._coalescing_manager(group, async_ops=True) as manager:
        for t in ones():
            dist.all_reduce(t, group=group)
    manager.wait()


def manager_all_gather(group):
    with c10d._coalescing_manager(group):
        for out, t in zip(ones(dist.get_world_size(group)), ones()):
            dist.all_gather_into_tensor(out, t, group=group)


def manager_reduce_scatter(group):
    with c10d._coalescing_manager(group):
        for out, t in zip(ones(1 / dist.get_world_size(group)), ones()):
            dist.reduce_scatter_tensor(out, t, group=group)


def manager_device(group):
    """With a device the manager asks the backend to group what is called inside."""
    with c10d._coalescing_manager(group, device=torch.device("cpu")):
        for t in ones():
            dist.broadcast(t, group=group, group_src=0)


def manager_mixed(group):
    with c10d._coalescing_manager(group):
        dist.all_reduce(torch.ones(8), group=group)
        dist.all_gather_into_tensor(torch.ones(8 * dist.get_world_size(group)), torch.ones(8), group=group)


def functional_all_reduce(group):
    for t in functional.all_reduce_coalesced(ones(), "sum", group or dist.group.WORLD):
        t.sum()


def functional_all_gather(group):
    for t in functional.all_gather_into_tensor_coalesced(ones(), group or dist.group.WORLD):
        t.sum()


def functional_reduce_scatter(group):
    for t in functional.reduce_scatter_tensor_coalesced(ones(), "sum", [0] * len(SIZES), group or dist.group.WORLD):
        t.sum()


CALLS = [all_reduce_coalesced, all_reduce_coalesced_async, all_gather_coalesced, manager_all_reduce,
         manager_all_reduce_async, manager_all_gather, manager_reduce_scatter, manager_device, manager_mixed,
         functional_all_reduce, functional_all_gather, functional_reduce_scatter]


def program(rank, recorder):
    pairs = [dist.new_group(ranks, group_desc="pair") for ranks in ([0, 2], [1, 3])]
    pair = pairs[rank % 2]

    usable, unsupported = [], {}
    for call in CALLS:
        try:
            call(None)
            usable.append(call)
        except (RuntimeError, NotImplementedError, ValueError, TypeError) as e:
            c10d._world.pg_coalesce_state.clear()
            unsupported[call.__name__] = f"{type(e).__name__}: {str(e).splitlines()[0]}"
        dist.barrier()
    if rank == 0:
        with open(os.path.join(recorder.extra, "unsupported.json"), "w") as f:
            json.dump(unsupported, f, indent=1)

    def step(index):
        for call in usable:
            with recorder.span(kind=call.__name__, where="world"):
                call(None)
        for call in usable:
            if call.__name__.startswith("manager"):
                with recorder.span(kind=call.__name__, where="pair"):
                    call(pair)

    return step


if __name__ == "__main__":
    common.generate_both(program, "coalesced_4rank", "coalesced collectives", common.SHAPES)
