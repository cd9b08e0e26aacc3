"""The layers of the pipeline programs: ones that wait a set time, and ones that compute.

A waiting layer holds two autograd functions of its own, so that the trace names the layer and the part of
the backward pass: Layer<N>Work waits in the forward pass and in the part of the backward pass that makes
the gradient of the input, Layer<N>Weight in the part that makes the gradient of the weight. Two cores can
then stand for as many ranks as we like, and a schedule that runs the two parts apart finds them apart.
"""

import time

import torch
from torch import nn
from torch.nn import functional

FORWARD_US = 5000
STEP_US = 125  # by which the layers differ


def forward_us(layer):
    """The waiting time of the forward pass; layers differ a little, and neighbours are not in order."""
    return FORWARD_US + STEP_US * (3 * layer % 8)


def half_backward_us(layer):
    """The waiting time of either part of the backward pass: as long as the forward pass."""
    return forward_us(layer)


def _wait(microseconds):
    time.sleep(microseconds / 1e6)


def _work_function(layer, ahead_us, back_us):
    """Passes its input on, and waits in both directions."""

    def forward(ctx, x):
        _wait(ahead_us)
        return x.clone()  # a view would do, but PyTorch detaches the output of a stage in place

    def backward(ctx, grad):
        _wait(back_us)
        return grad

    return _autograd_function(f"Layer{layer}Work", forward, backward)


def _weight_function(layer, back_us):
    """Passes the weight on, and waits on the way back."""

    def forward(ctx, weight):
        return weight.view_as(weight)

    def backward(ctx, grad):
        _wait(back_us)
        return grad

    return _autograd_function(f"Layer{layer}Weight", forward, backward)


def _autograd_function(name, forward, backward):
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(name, (torch.autograd.Function,), methods)


class TimedLayer(nn.Module):
    """A linear layer whose passes take a set time: forward, and either part of the backward pass."""

    def __init__(self, layer, shape, ahead_us, back_us):
        super().__init__()
        self.linear = nn.Linear(*shape, bias=False)
        self.work = _work_function(layer, ahead_us, back_us)
        self.weight = _weight_function(layer, back_us)

    def forward(self, x):
        weight = self.weight.apply(self.linear.weight)
        return self.work.apply(functional.linear(x, weight))


class WaitingLayer(TimedLayer):
    """A small linear layer that takes as long as its number says."""

    def __init__(self, layer, width):
        super().__init__(layer, (width, width), forward_us(layer), half_backward_us(layer))


class ComputingLayer(nn.Module):
    """A matrix product that takes some milliseconds, two in the backward pass."""

    def __init__(self, layer, width):
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)

    def forward(self, x):
        return torch.tanh(self.linear(x))


KINDS = {"waiting": WaitingLayer, "computing": ComputingLayer}


def layers(kind, numbers, width):
    """The layers of a stage, which have the same parameters in whatever stage and process they are."""
    made = []
    for number in numbers:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(500 + number)
            made.append(KINDS[kind](number, width))
    return nn.Sequential(*made)
