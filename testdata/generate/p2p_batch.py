"""Point-to-point messages in all their forms, four ranks, Gloo on one machine.

Usage: python p2p_batch.py [FOLDER]      (default ../p2p_batch_4rank; a second set goes to FOLDER_bare)

Every step:

  batch_isend_irecv   a ring: to the next rank and from the one before, two tensors each
  isend, irecv        the ring in the other direction, one call after the other
  send, recv          0 to 1, 2 to 3, then back
  the same three in the group of the ranks 1 and 3, where they are 0 and 1

Each message has a size of its own, so that a pair can be told from its size.
"""

import torch
import torch.distributed as dist

import common

ODD = [1, 3]


def program(rank, recorder):
    odd = dist.new_group(ODD, group_desc="odd_ranks")

    def exchange(group, ranks, size):
        me, n = ranks.index(rank), len(ranks)
        after, before = ranks[(me + 1) % n], ranks[(me - 1) % n]

        # A ring in one batch. The size tells the sender's place in the group.
        sends = [torch.ones(size + me, 2) for _ in range(2)]
        receives = [torch.empty(size + (me - 1) % n, 2) for _ in range(2)]
        batch = [dist.P2POp(dist.isend, t, after, group, tag) for tag, t in enumerate(sends)]
        batch += [dist.P2POp(dist.irecv, t, before, group, tag) for tag, t in enumerate(receives)]
        for work in dist.batch_isend_irecv(batch):
            work.wait()

        # The other way round, unbatched.
        received = torch.empty(3 * size + (me + 1) % n, dtype=torch.float64)
        receive = dist.irecv(received, after, group=group)
        send = dist.isend(torch.ones(3 * size + me, dtype=torch.float64), before, group=group)
        send.wait()
        receive.wait()

        # In pairs, blocking.
        there, back = torch.ones(5 * size, dtype=torch.int32), torch.ones(5 * size + 1, dtype=torch.int32)
        if me % 2 == 0:
            dist.send(there, after, group=group, tag=7)
            dist.recv(back, after, group=group, tag=8)
        else:
            dist.recv(there, before, group=group, tag=7)
            dist.send(back, before, group=group, tag=8)

    def step(index):
        with recorder.span(kind="world"):
            exchange(None, list(range(common.WORLD)), 16)
        if rank in ODD:
            with recorder.span(kind="odd_ranks"):
                exchange(odd, ODD, 64)

    return step


if __name__ == "__main__":
    common.generate_both(program, "p2p_batch_4rank", "batch_isend_irecv, isend and irecv, send and recv")
