"""Data-parallel training with a mixture-of-experts layer, four ranks, Gloo on one machine.

Usage: python dp_moe.py [FOLDER]      (default ../dp_moe_4rank)

Every step of every rank:

  barrier                             all ranks start together
  forward   dense layers
            all_to_all   int64        how many tokens go to each expert, even
            all_to_allv  float32      the tokens, to the ranks that hold their experts
            all_to_allv  float32      the experts' answers, back
            dense layers
  backward  all_to_allv twice, in the other direction
            all_reduce   float32      one for each gradient bucket, while backward goes on
  broadcast                           inside each pair of ranks, from the first of the pair
  all_gather                          the losses
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import common

TOKENS = 96
WIDTH = 256
DENSE_LAYERS = 3
BUCKET_MB = 0.5
PAIRS = [[0, 1], [2, 3]]


class Exchange(torch.autograd.Function):
    """all_to_all_single with splits, whose gradient is the reverse exchange."""

    @staticmethod
    def forward(ctx, tokens, in_splits, out_splits, group):
        ctx.in_splits, ctx.out_splits, ctx.group = in_splits, out_splits, group
        out = tokens.new_empty(sum(out_splits), tokens.shape[1])
        dist.all_to_all_single(out, tokens.contiguous(), out_splits, in_splits, group=group)
        return out

    @staticmethod
    def backward(ctx, grad):
        back = grad.new_empty(sum(ctx.in_splits), grad.shape[1])
        dist.all_to_all_single(back, grad.contiguous(), ctx.in_splits, ctx.out_splits, group=ctx.group)
        return back, None, None, None


class Experts(nn.Module):
    """One expert a rank; each token goes to the expert its router prefers."""

    def __init__(self, group):
        super().__init__()
        self.group = group
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)
        self.router = nn.Linear(WIDTH, self.size, bias=False)
        self.expert = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, tokens):
        scores = self.router(tokens)
        # The last rank sends nothing to the first expert, so that a split of zero occurs.
        if self.rank == self.size - 1:
            scores = scores - torch.tensor([1e6] + [0.0] * (self.size - 1))
        weight, expert = scores.softmax(dim=1).max(dim=1)
        order = expert.argsort(stable=True)
        send = torch.bincount(expert, minlength=self.size)
        receive = torch.empty_like(send)
        dist.all_to_all_single(receive, send, group=self.group)
        send, receive = send.tolist(), receive.tolist()
        at_expert = Exchange.apply(tokens[order], send, receive, self.group)
        answers = Exchange.apply(self.expert(at_expert), receive, send, self.group)
        return tokens + weight[:, None] * answers[order.argsort()]


def dense():
    layers = []
    for _ in range(DENSE_LAYERS):
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers)


def program(rank, recorder):
    experts_group = dist.new_group(list(range(common.WORLD)), group_desc="expert_parallel")
    pairs = [dist.new_group(ranks, group_desc="pair") for ranks in PAIRS]
    pair = pairs[rank // 2]

    torch.manual_seed(7)  # the same dense weights everywhere
    model = nn.Sequential(dense(), Experts(experts_group), dense())
    torch.manual_seed(100 + rank)
    for layer in model[1].expert:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
    # Experts differ between ranks, so their gradients are not reduced.
    ignored = [name for name, _ in model.named_parameters() if ".expert." in name]
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, ignored)
    model = DistributedDataParallel(model, bucket_cap_mb=BUCKET_MB, gradient_as_bucket_view=True)

    def reduce_bucket(_, bucket):
        """The default reduction of DistributedDataParallel, through a call that can be recorded."""
        gradients = bucket.buffer().div_(common.WORLD)
        work = dist.all_reduce(gradients, async_op=True)
        return work.get_future().then(lambda done: done.value()[0])

    model.register_comm_hook(None, reduce_bucket)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scale = torch.ones(16)
    losses = torch.empty(common.WORLD)

    def step(index):
        torch.manual_seed(10_000 + 100 * index + rank)
        dist.barrier()
        tokens = torch.randn(TOKENS, WIDTH)
        with recorder.span(kind="forward"):
            loss = model(tokens).square().mean()
        with recorder.span(kind="backward"):
            loss.backward()
        with recorder.span(kind="optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        dist.broadcast(scale, src=PAIRS[rank // 2][0], group=pair)
        dist.all_gather_into_tensor(losses, loss.detach().reshape(1))

    return step


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, os.pardir, "dp_moe_4rank")
    common.generate(program, folder, "DistributedDataParallel and a mixture-of-experts layer",
                    common.Settings(execution_trace=True))
