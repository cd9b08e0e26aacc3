"""Groups of more than 30 ranks, 36 processes, Gloo on one machine.

Usage: python world36.py [FOLDER]      (default ../world_36rank; a second set goes to FOLDER_bare)

Every step makes an all_reduce and an all_to_all with uneven splits in the world, in the group of the
first 33 ranks, and in one of three groups of 12, which take every third rank; and an all_gather in the
world alone, because Gloo makes about four small operators for each member of an all_gather.
"""

import dataclasses

import torch
import torch.distributed as dist

import common

WORLD = 36
FIRST = list(range(33))
KEEP = (0, 17, 35)


def rows(source, destination):
    """How many rows source sends to destination; both by place in the group."""
    return (3 * source + 5 * destination) % 7


def program(rank, recorder):
    first = dist.new_group(FIRST, group_desc="first33")
    thirds = [dist.new_group(list(range(i, WORLD, 3)), group_desc="third") for i in range(3)]

    def collectives(group):
        n, me = dist.get_world_size(group), dist.get_rank(group)
        dist.all_reduce(torch.ones(n), group=group)
        send = [rows(me, other) for other in range(n)]
        receive = [rows(other, me) for other in range(n)]
        dist.all_to_all_single(torch.empty(sum(receive), 2), torch.ones(sum(send), 2), receive, send, group=group)

    def step(index):
        collectives(None)
        dist.all_gather_into_tensor(torch.empty(3 * WORLD, dtype=torch.float64), torch.ones(3, dtype=torch.float64))
        if rank in FIRST:
            collectives(first)
        collectives(thirds[rank % 3])

    return step


if __name__ == "__main__":
    # 36 processes that each load PyTorch need more memory than many machines have: they are forked instead.
    settings = dataclasses.replace(common.SHAPES, world=WORLD, start_method="fork")
    bare = dataclasses.replace(common.BARE, world=WORLD, start_method="fork", keep=KEEP)
    common.generate_both(program, "world_36rank", "groups of more than 30 ranks", settings, bare)
