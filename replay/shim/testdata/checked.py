# Written by mixdown 0.1.0.
# To apply it, put these two lines at the top of the training script, before other imports of torch.distributed:
#     import mixdown_shim
#     mixdown_shim.install()
#
# Its rules, the first that matches decides (PyTorch's name of the backend behind them):
#     1. "all_to_all@>=4KiB=standin"  -> "standin"  (all_to_all with lists only within sized())
#     2. "all_to_allv@>=64KiB=gloo"  -> "gloo"  (only within sized(): members know no common size)
#     3. "all_to_allv=standin"  -> "standin"
#     4. "all_reduce@>=1KiB=standin"  -> "standin"
#     5. "broadcast@group:tp=standin"  -> "standin"
#     6. "all_gather@1KiB-8KiB=standin"  -> "standin"
#     7. "reduce_scatter@<=4095B=standin"  -> "standin"
#     8. "gather=standin"  -> "standin"
#     9. "scatter@group:odd=standin"  -> "standin"
#     10. "reduce=standin"  -> "standin"
#     11. "barrier=standin"  -> "standin"
#     12. "send@<=1023B=standin"  -> "standin"
#     13. "recv@<=1023B=standin"  -> "standin"
#     14. "batch=standin"  -> "standin"
#     15. "*=gloo"  -> "gloo"
#
"""Sends each operation of torch.distributed to the backend that a mix names for it.

What it does. install() makes, beside every process group, one more group over the same ranks for each backend
that the rules name for it (its twins). The public functions of torch.distributed then look at operation, size
and group, take the first rule that matches, and call PyTorch with the twin in place of the group. What they
return, and async_op, are PyTorch's own. Where no rule matches the group is used as ever.

  MIXDOWN_SHIM=off       nothing is touched: the way to compare a job with and without
  MIXDOWN_SHIM_COUNTS=1  every rank prints at its end what it routed, by rule
  logging                logger "mixdown_shim": at INFO the first call of each rule, at WARNING what isn't routed

When it acts. install() may come before init_process_group, which then makes the twins of the default group, or
after it: then it is collective over all ranks, as refresh() is. Groups made afterwards get theirs as they are
made. Twins are made, and used once, in the same order on all ranks. Choose the GPU (torch.cuda.set_device, or
LOCAL_RANK as torchrun sets it) before.

Sizes. A rule goes by bytes that every member knows: of all_reduce, reduce and broadcast the tensor, of gathers,
scatters and reduce_scatter the whole over all ranks, of an even all_to_all_single all that a rank sends, of a
send or receive the message, of coalesced operations their sum. all_to_all_single with split sizes
(all_to_allv), all_to_all with lists and batch_isend_irecv have no such size: what a rank sends there is not what
another does, and a choice by it would send members to different libraries. For them rules with a size are passed
over, unless the program says one that is the same on all members:

    with mixdown_shim.sized(nbytes): dist.all_to_all_single(...)

Give split sizes on all members of a group or on none: with and without are two operations. batch_isend_irecv is
the operation batch, also on backends that carry it out as single sends and receives (as traces of Gloo show it).

Order. Collectives of one group on one backend keep the order of the calls, as ever. Between backends:
  - On tensors of a GPU, a collective first waits for those that this process has in flight on another backend
    there, in any group: PyTorch's wait(), which holds the stream on NCCL and the program on others. So they
    never run side by side, and in the same order on all ranks if all ranks call in the same order. Calls of
    groups that share ranks must: with asynchronous calls in different orders on two ranks the waits can hang.
  - On tensors of the host nothing waits: libraries there go on by themselves, each with its own order.
  - PyTorch's MPI runs one collective at a time in a process: one in another group is waited for first. It does
    not know streams either: the program waits for the stream before it.
  - Sends and receives neither wait nor are waited for: a receive that is posted early must not hold up the
    collective that comes before its send.

What is routed: all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter with their
tensor, coalesced and functional (torch.distributed._functional_collectives, so DTensor) forms, barrier, send,
recv, isend, irecv, batch_isend_irecv, and what calls these: object collectives, FSDP, torch.distributed.nn.
What is not: what C++ calls itself. DistributedDataParallel reduces gradients there; give it the hook
    model.register_comm_hook(group, mixdown_shim.ddp_comm_hook)     # None for the default group
(its first broadcast of parameters stays). Nor graphs of torch.compile, symmetric memory, monitored_barrier,
sparse tensors, tensors on a device that the rule's backend can't take, groups that no rank told the shim of
(refresh() does), and names that were imported (from torch.distributed import all_reduce) before install().
The backward pass of a functional collective stays where its forward pass went. A library that can't merge
coalesced operations gets them one after the other. Twins have PyTorch's default time-out; groups that only
members make (use_local_synchronization, split_group) get no MPI.
"""

import atexit
import contextlib
import functools
import inspect
import logging
import os
import sys
import threading
from collections import namedtuple

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.distributed_c10d as c10d

Rule = namedtuple("Rule", "text op least most group backend")  # op and group: None for all; bytes, both included

VERSION = "0.1.0"
RULES = (
    Rule("all_to_all@>=4KiB=standin", op="all_to_all", least=4096, most=None, group=None, backend="standin"),
    Rule("all_to_allv@>=64KiB=gloo", op="all_to_allv", least=65536, most=None, group=None, backend="gloo"),
    Rule("all_to_allv=standin", op="all_to_allv", least=0, most=None, group=None, backend="standin"),
    Rule("all_reduce@>=1KiB=standin", op="all_reduce", least=1024, most=None, group=None, backend="standin"),
    Rule("broadcast@group:tp=standin", op="broadcast", least=0, most=None, group="tp", backend="standin"),
    Rule("all_gather@1KiB-8KiB=standin", op="all_gather", least=1024, most=8192, group=None, backend="standin"),
    Rule("reduce_scatter@<=4095B=standin", op="reduce_scatter", least=0, most=4095, group=None, backend="standin"),
    Rule("gather=standin", op="gather", least=0, most=None, group=None, backend="standin"),
    Rule("scatter@group:odd=standin", op="scatter", least=0, most=None, group="odd", backend="standin"),
    Rule("reduce=standin", op="reduce", least=0, most=None, group=None, backend="standin"),
    Rule("barrier=standin", op="barrier", least=0, most=None, group=None, backend="standin"),
    Rule("send@<=1023B=standin", op="send", least=0, most=1023, group=None, backend="standin"),
    Rule("recv@<=1023B=standin", op="recv", least=0, most=1023, group=None, backend="standin"),
    Rule("batch=standin", op="batch", least=0, most=None, group=None, backend="standin"),
    Rule("*=gloo", op=None, least=0, most=None, group=None, backend="gloo"),
)

logger = logging.getLogger("mixdown_shim")


class MixError(RuntimeError):
    """The mix can't be applied here."""


class _Local(threading.local):
    passing = 0  # depth of calls that are not looked at
    size = None  # of sized()
    naming = None  # name of the group that is being made
    named = None  # the last name that PyTorch gave
    regions = None  # coalescing managers that are open, by group


class _Group:
    """A process group of the job, with the groups beside it."""

    def __init__(self, name, description, own):
        self.name, self.description = name, description
        self.own = own  # backend by type of device
        self.twins = {}  # process group by backend


_local = _Local()
_lock = threading.Lock()
_groups = {}  # _Group by process group
_twins = set()  # all process groups made here
_counts = {}  # [calls, bytes] by (rule, operation, group, backend)
_said = set()  # what was logged once
_in_flight = []  # _InFlight, where another backend may have to wait
_patched = []  # (module, name, original)
_original = {}  # PyTorch's functions of process groups, by name


# Use


def install():
    """Begins to route. False when the environment says MIXDOWN_SHIM=off."""
    if os.environ.get("MIXDOWN_SHIM", "").lower() in ("0", "off", "no", "false"):
        logger.info("switched off by MIXDOWN_SHIM")
        return False
    if _patched:
        return True
    _check_rules()
    _patch_all()
    if dist.is_initialized():
        refresh()
    if os.environ.get("MIXDOWN_SHIM_COUNTS", "0") not in ("", "0"):
        atexit.register(_print_counts)
    return True


def uninstall():
    """Puts PyTorch's functions back. The twins stay until their groups are destroyed."""
    while _patched:
        module, name, original = _patched.pop()
        setattr(module, name, original)


def refresh():
    """Makes the twins of groups that have none yet. All ranks of the job must call it."""
    mine = {}
    for group in list(c10d._world.pg_map):
        if group not in _groups and group not in _twins:
            ranks = tuple(dist.get_process_group_ranks(group))
            mine[ranks, group.group_name, _description(group), str(c10d._world.pg_backend_config[group])] = group
    everyone = [None] * dist.get_world_size()
    with _pass():
        dist.all_gather_object(everyone, list(mine))
    for key in sorted(set(key for keys in everyone for key in keys)):
        ranks, name, description, config = key
        _adopt(mine.get(key), list(ranks), name, description, config, local=False)


@contextlib.contextmanager
def sized(nbytes):
    """Gives operations without a size that all members know one: the same on all of them."""
    before, _local.size = _local.size, int(nbytes)
    try:
        yield
    finally:
        _local.size = before


def counts():
    """What was routed: calls and bytes by rule (number from 1, None for no rule), operation, group, backend."""
    with _lock:
        return [
            dict(rule=rule, op=op, group=group, backend=backend, calls=calls, bytes=nbytes)
            for (rule, op, group, backend), (calls, nbytes) in sorted(_counts.items(), key=str)
        ]


def decide(op, nbytes, group="", description=""):
    """The number of the rule for an operation, from 1, and the rule; None and None when there is none.

    nbytes is None where members don't know a common size.
    """
    for number, rule in enumerate(RULES, 1):
        if rule.op not in (None, op) or rule.group not in (None, group, description):
            continue
        if nbytes is None:
            if rule.least > 0 or rule.most is not None:
                continue
        elif nbytes < rule.least or rule.most is not None and nbytes > rule.most:
            continue
        return number, rule
    return None, None


def ddp_comm_hook(state, bucket):
    """A DistributedDataParallel hook that averages gradients through the routed all_reduce.

    state is the process group that the model was made with, None for the default group.
    """
    group = state if state is not None else dist.group.WORLD
    gradients = bucket.buffer().div_(group.size())
    work = dist.all_reduce(gradients, group=group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


# Decisions


def _check_rules():
    """Refuses rules that can't be applied here, before anything is changed."""
    _devices.cache_clear()  # of a backend that was registered since
    for number, rule in enumerate(RULES, 1):
        where = "rule %d (%s)" % (number, rule.text)
        if not dist.is_backend_available(rule.backend):
            raise MixError("%s: this PyTorch has no backend %r. It must be built with it, or what registers it "
                           "must be imported before install()" % (where, rule.backend))
        if not _devices(rule.backend):
            raise MixError("%s: none of the devices of %s is here" % (where, rule.backend))
        if rule.op in ("all_to_allv", "batch") and (rule.least > 0 or rule.most is not None):
            logger.warning("%s: all members of %s know no common size: it applies within sized() only", where, rule.op)


@functools.lru_cache(None)
def _devices(backend):
    """The types of devices that a backend takes and this machine has."""
    known = c10d.Backend.backend_capability.get(backend, ["cpu"])
    return [d for d in known if d == "cpu" or _accelerator(d) is not None]


def _accelerator(kind):
    """The module of a type of device, None where there is no such device."""
    module = getattr(torch, kind, None)
    return module if hasattr(module, "is_available") and module.is_available() else None


def _description(group):
    return getattr(group, "group_desc", "") or ""


def _route(op, size, tensor, group):
    """The process group to use in place of group, and its backend: a twin of it, or itself."""
    entry = _groups.get(group)
    if entry is None:
        name = c10d._world.pg_names.get(group, "?")
        _warn_once(("group", name), "group %s has no twins, its operations stay: call refresh() on all ranks", name)
        return group, None
    if size is None:
        size = _local.size
    device = tensor.device.type if tensor is not None else None
    number, rule = decide(op, size, entry.name, entry.description)
    own = entry.own.get(device)
    if device is None:  # a barrier has none: any backend of the group will do
        owned = list(entry.own.values())
        own = rule.backend if rule is not None and rule.backend in owned else owned[0]
    target, backend = group, own
    if rule is None or rule.backend == own:
        pass
    elif device and device not in _devices(rule.backend) or tensor is not None and tensor.is_sparse:
        kind = "sparse" if tensor.is_sparse else device
        _warn_once((number, kind), "rule %d (%s): %s can't take %s tensors, they stay", number, rule.text,
                   rule.backend, kind)
        number = None
    elif rule.backend in entry.twins:
        target, backend = entry.twins[rule.backend], rule.backend
    else:
        _warn_once((number, entry.name), "rule %d (%s): group %s has no %s, its operations stay", number, rule.text,
                   entry.name, rule.backend)
        number = None
    with _lock:
        count = _counts.setdefault((number, op, entry.name, backend), [0, 0])
        count[0] += 1
        count[1] += size or 0
        first = number is not None and number not in _said
        _said.add(number)
    if first:
        logger.info("rule %d (%s): %s, %s, group %s (%s), goes to %s", number, rule.text, op,
                    "size not known to all" if size is None else "%d bytes" % size, entry.name, entry.description,
                    backend)
    return target, backend


def _warn_once(key, *message):
    with _lock:
        first = key not in _said
        _said.add(key)
    if first:
        logger.warning(*message)


def _print_counts():
    rank = os.environ.get("RANK", "")
    for c in counts():
        rule = "no rule" if c["rule"] is None else "rule %d (%s)" % (c["rule"], RULES[c["rule"] - 1].text)
        print("mixdown_shim%s: %s: %s, group %s, on %s: %d calls, %d bytes" %
              (rank and " rank " + rank, rule, c["op"], c["group"], c["backend"], c["calls"], c["bytes"]),
              file=sys.stderr)


# Order between backends

_InFlight = namedtuple("_InFlight", "backend group device work wait")

_SIDE_BY_SIDE = (None, "cpu")  # devices on which backends may be in flight together
_ONE_AT_A_TIME = ("mpi",)  # run one collective at a time in a process
_NO_STREAMS = ("mpi",)  # don't know the streams of a GPU


def _settle(backend, group, device):
    """Waits for what must not be in flight together with a collective on the backend."""
    def conflicts(f):
        if f.backend == backend:
            return backend in _ONE_AT_A_TIME and f.group is not group
        return device == f.device and device not in _SIDE_BY_SIDE

    with _lock:
        before = [f for f in _in_flight if conflicts(f)]
        _in_flight[:] = [f for f in _in_flight if not conflicts(f)]
    for f in before:
        f.wait()
    if backend in _NO_STREAMS and device not in (None, "cpu"):
        _accelerator(device).current_stream().synchronize()


def _remember(backend, group, device, result):
    """Keeps how to wait for a collective that was begun."""
    if device in _SIDE_BY_SIDE and backend not in _ONE_AT_A_TIME:
        return
    work = result if hasattr(result, "is_completed") else None
    if work is not None:
        wait = work.wait
    elif isinstance(result, (torch.Tensor, list)):
        wait = functools.partial(_wait_tensors, result)
    elif device in (None, "cpu"):
        return  # the call has waited
    else:
        wait = functools.partial(_wait_event, _accelerator(device), _accelerator(device).Event())
        wait.args[1].record()
    with _lock:
        if len(_in_flight) >= 32:
            _in_flight[:] = [f for f in _in_flight if f.work is None or not f.work.is_completed()]
            del _in_flight[:-256]
        _in_flight.append(_InFlight(backend, group, device, work, wait))


def _wait_event(module, event):
    module.current_stream().wait_event(event)


def _wait_tensors(tensors):
    for t in tensors if isinstance(tensors, list) else [tensors]:
        functional.wait_tensor(t)


# What the functions of torch.distributed are about: operation, bytes, a tensor of the call. Sizes are those that
# all members know, None where they don't. n is the number of members.


def _bytes(*tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def _whole(op, name, times_members=False):
    def describe(call, n):
        tensor = call[name]
        return op, _bytes(tensor) * (n if times_members else 1), tensor
    return describe


def _several(op, name, times_members=False):
    def describe(call, n):
        tensors = call[name]
        return op, _bytes(*tensors) * (n if times_members else 1), tensors[0]
    return describe


def _listed(op, name):
    def describe(call, n):
        tensors = call[name]  # the same sizes on all members
        even = all(t.numel() == tensors[0].numel() for t in tensors)
        return op if even else op + "v", _bytes(*tensors), tensors[0]
    return describe


def _nested(call, n):
    lists = call["output_tensor_lists"]
    return "all_gather", sum(_bytes(*tensors) for tensors in lists), lists[0][0]


def _all_to_all_single(call, n):
    if call.get("output_split_sizes") or call.get("input_split_sizes"):
        return "all_to_allv", None, call["input"]
    return "all_to_all", max(_bytes(call["input"]), _bytes(call["output"])), call["input"]


def _all_to_all(call, n):
    return "all_to_all", None, call["input_tensor_list"][0]  # who knows whether others' parts are even?


def _functional_all_to_all(call, n):
    return "all_to_allv", None, call["self"]  # PyTorch gives it split sizes always


def _barrier(call, n):
    return "barrier", 0, None


_PUBLIC = {
    "all_reduce": _whole("all_reduce", "tensor"),
    "all_reduce_coalesced": _several("all_reduce", "tensors"),
    "reduce": _whole("reduce", "tensor"),
    "broadcast": _whole("broadcast", "tensor"),
    "all_gather": _listed("all_gather", "tensor_list"),
    "all_gather_coalesced": _nested,
    "all_gather_into_tensor": _whole("all_gather", "output_tensor"),
    "all_gather_single": _whole("all_gather", "output_tensor"),
    "_all_gather_base": _whole("all_gather", "output_tensor"),
    "reduce_scatter": _listed("reduce_scatter", "input_list"),
    "reduce_scatter_tensor": _whole("reduce_scatter", "input"),
    "reduce_scatter_single": _whole("reduce_scatter", "input"),
    "_reduce_scatter_base": _whole("reduce_scatter", "input"),
    "all_to_all_single": _all_to_all_single,
    "all_to_all": _all_to_all,
    "gather": _whole("gather", "tensor", times_members=True),
    "gather_single": _whole("gather", "tensor", times_members=True),
    "gather_into_tensor": _whole("gather", "tensor", times_members=True),
    "scatter": _whole("scatter", "tensor", times_members=True),
    "barrier": _barrier,
    "send": _whole("send", "tensor"),
    "isend": _whole("send", "tensor"),
    "recv": _whole("recv", "tensor"),
    "irecv": _whole("recv", "tensor"),
}

_FUNCTIONAL = {
    "all_reduce": _whole("all_reduce", "self"),
    "all_reduce_coalesced": _several("all_reduce", "self"),
    "broadcast": _whole("broadcast", "self"),
    "all_gather_tensor": _whole("all_gather", "self", times_members=True),
    "all_gather_tensor_autograd": _whole("all_gather", "self", times_members=True),
    "all_gather_single": _whole("all_gather", "self", times_members=True),
    "all_gather_single_autograd": _whole("all_gather", "self", times_members=True),
    "all_gather_into_tensor_coalesced": _several("all_gather", "self", times_members=True),
    "all_gather_single_coalesced": _several("all_gather", "self", times_members=True),
    "reduce_scatter_tensor": _whole("reduce_scatter", "self"),
    "reduce_scatter_tensor_autograd": _whole("reduce_scatter", "self"),
    "reduce_scatter_single": _whole("reduce_scatter", "self"),
    "reduce_scatter_single_autograd": _whole("reduce_scatter", "self"),
    "reduce_scatter_tensor_coalesced": _several("reduce_scatter", "inputs"),
    "reduce_scatter_single_coalesced": _several("reduce_scatter", "inputs"),
    "all_to_all_single": _functional_all_to_all,
    "all_to_all_single_autograd": _functional_all_to_all,
}

_COALESCED = ("all_reduce", "all_gather_into_tensor", "all_gather_single", "reduce_scatter_tensor",
              "reduce_scatter_single")  # what PyTorch's coalescing manager merges


# Routing


@contextlib.contextmanager
def _pass():
    """Within, calls go to PyTorch as they are."""
    _local.passing += 1
    try:
        yield
    finally:
        _local.passing -= 1


# torch.compile knows this function, and leaves out of its graphs what isn't done when it is true. 2.2 has it elsewhere.
_compiling = getattr(torch.compiler, "is_compiling", None) or torch._utils.is_compiling


def _arguments(names, args, kwargs):
    call = dict(zip(names, args))
    call.update(kwargs)
    return call


def _default(group):
    return c10d._get_default_group() if group is None else group


def _run(original, op, size, tensor, group, call):
    """Calls PyTorch with the group that the rules choose."""
    target, backend = _route(op, size, tensor, group)
    if target is not group:
        call["group"] = target
    collective = op not in ("send", "recv", "batch")
    device = tensor.device.type if tensor is not None else None
    if collective:
        _settle(backend, target, device)
    with _pass():
        result = original(**call)
    if collective:
        _remember(backend, target, device, result)
    return result


def _route_public(name, original, describe):
    names = tuple(inspect.signature(original).parameters)

    @functools.wraps(original)
    def routed(*args, **kwargs):
        if _compiling() or _local.passing:
            return original(*args, **kwargs)
        call = _arguments(names, args, kwargs)
        group = _default(call.get("group"))
        if not isinstance(group, dist.ProcessGroup):
            return original(*args, **kwargs)
        try:
            op, size, tensor = describe(call, group.size())
        except (KeyError, TypeError, AttributeError, IndexError):
            return original(*args, **kwargs)  # PyTorch says what is wrong with the call
        region = (_local.regions or {}).get(group)
        if region is not None:
            return region.add(name, original, call, op, size, tensor)
        return _run(original, op, size, tensor, group, call)

    return routed


def _route_functional(original, describe):
    names = tuple(inspect.signature(original).parameters)
    tracing = getattr(functional, "_are_we_tracing", lambda: False)

    @functools.wraps(original)
    def routed(*args, **kwargs):
        if _compiling() or _local.passing or tracing():
            return original(*args, **kwargs)
        call = _arguments(names, args, kwargs)
        group = _functional_group(call.get("group"))
        if group is None:
            return original(*args, **kwargs)
        try:
            op, size, tensor = describe(call, group.size())
        except (KeyError, TypeError, AttributeError, IndexError):
            return original(*args, **kwargs)
        return _run(original, op, size, tensor, group, call)

    return routed


def _functional_group(group):
    """The process group of a functional collective; None for lists of ranks."""
    if isinstance(group, dist.ProcessGroup):
        return group
    if isinstance(group, str):
        return c10d._resolve_process_group(group)
    if isinstance(group, tuple) and len(group) == 2 and hasattr(group[0], "get_group"):
        return group[0].get_group(group[1])
    if hasattr(group, "get_group") and group.ndim == 1:
        return group.get_group()
    return None


def _route_batch(original):
    @functools.wraps(original)
    def routed(p2p_op_list):
        if _compiling() or _local.passing or not isinstance(p2p_op_list, list) or not p2p_op_list:
            return original(p2p_op_list)
        if not all(isinstance(p, c10d.P2POp) for p in p2p_op_list):
            return original(p2p_op_list)
        group = _default(p2p_op_list[0].group)
        target, _ = _route("batch", None, p2p_op_list[0].tensor, group)
        with _pass():
            return original([_of_group(p, target if target is not group else p.group) for p in p2p_op_list])

    return routed


def _of_group(p, group):
    """A copy of a P2POp for another group, with the functions that PyTorch now compares with."""
    copy = object.__new__(type(p))
    copy.__dict__.update(p.__dict__)
    copy.op, copy.group = getattr(c10d, p.op.__name__), group
    return copy


class _Region:
    """Calls within a coalescing manager. Their sum is known at its end, so they are kept until then."""

    def __init__(self, manager, group, device, async_ops, result):
        self.manager, self.group, self.device, self.async_ops, self.result = manager, group, device, async_ops, result
        self.kept = []  # (original, call, op, size, tensor)
        self.open = None  # PyTorch's manager, where calls had to go on at once

    def add(self, name, original, call, op, size, tensor):
        if self.open is None and name in _COALESCED and (not self.kept or self.kept[0][2] == op):
            self.kept.append((original, call, op, size, tensor))
            return c10d._IllegalWork() if call.get("async_op") else None
        self.enter(self.group)
        with _pass():
            return original(**call)

    def enter(self, group):
        """Opens PyTorch's manager on a group, and makes the calls that were kept."""
        if self.open is not None:
            return
        self.open = contextlib.ExitStack()
        self.inner = self.open.enter_context(self.manager(group, self.device, self.async_ops))
        with _pass():
            for original, call, _, _, _ in self.kept:
                original(**dict(call, group=group))

    def close(self):
        target, backend, device = self.group, None, None
        if self.open is None and self.kept:
            _, _, op, _, tensor = self.kept[0]
            target, backend = _route(op, sum(size for _, _, _, size, _ in self.kept), tensor, self.group)
            device = tensor.device.type
            _settle(backend, target, device)
        if target is self.group or getattr(target._get_backend(tensor.device), "supports_coalescing", False):
            self.enter(target)
            with _pass():
                self.open.close()
            works = list(self.inner.works)
        else:  # one after the other, where the library can't merge them
            with _pass():
                works = [original(**dict(call, group=target, async_op=True)) for original, call, _, _, _ in self.kept]
            if not self.async_ops:
                for work in works:
                    work.wait()
        for work in works or [None]:
            if backend is not None:
                _remember(backend, target, device, work)
        self.result.works.extend(works)


def _route_manager(original):
    @functools.wraps(original)
    @contextlib.contextmanager
    def routed(group=None, device=None, async_ops=False):
        group = _default(group)
        if _compiling() or _local.passing or not isinstance(group, dist.ProcessGroup):
            with original(group, device, async_ops) as manager:
                yield manager
            return
        region = _Region(original, group, device, async_ops, c10d._CoalescingManager())
        _local.regions = _local.regions or {}
        _local.regions[group] = region
        try:
            yield region.result
        finally:
            del _local.regions[group]
        region.close()

    return routed


# Groups


def _adopt(group, ranks, name, description, config, local):
    """Makes the twins of a group: on members, and with local=False on all other ranks too."""
    own = {str(d): str(b) for d, b in c10d.BackendConfig(c10d.Backend(config)).get_device_backend_map().items()}
    entry = _Group(name, description, own)
    for backend in sorted({rule.backend for rule in RULES if rule.group in (None, name, description)}):
        if all(own.get(device) == backend for device in _devices(backend)):
            continue
        if local and backend == "mpi":
            _warn_once(("mpi", name), "group %s is made by its members alone, which PyTorch's MPI can't", name)
            continue
        twin = _make(backend, ranks, name, description, local)
        if group is not None:
            _warm_up(twin, backend, name)
            entry.twins[backend] = twin
            _twins.add(twin)
    if group is not None:
        _groups[group] = entry


def _make(backend, ranks, name, description, local):
    make = _original["_new_group_with_tag"]
    arguments = dict(ranks=ranks, backend=backend, use_local_synchronization=local,
                     group_desc="mixdown twin of %s (%s)" % (name, description), sort_ranks=False)
    known = inspect.signature(make).parameters
    _local.naming = "mixdown:%s:%s" % (backend, name)
    try:
        with _pass():
            return make(**{key: value for key, value in arguments.items() if key in known})
    finally:
        _local.naming = None


def _warm_up(twin, backend, name):
    """Uses a twin once, so that what a library makes at first use is made in the same order everywhere.

    It also shows whether the library numbers the ranks as PyTorch does.
    """
    for kind in _devices(backend):
        device = torch.device(kind) if kind == "cpu" else torch.device(kind, _device_index(kind))
        mine = torch.tensor([twin.rank()], device=device)
        found = [torch.empty_like(mine) for _ in range(twin.size())]
        with _pass():
            dist.all_gather(found, mine, group=twin)
        if [int(t) for t in found] != list(range(twin.size())):
            raise MixError("%s numbers the ranks of group %s as %s: start the job so that its ranks are PyTorch's" %
                           (backend, name, [int(t) for t in found]))


def _device_index(kind):
    bound = getattr(c10d._get_default_group(), "bound_device_id", None)
    if bound is not None and bound.index is not None:
        return bound.index
    module = _accelerator(kind)
    if os.environ.get("LOCAL_RANK", "").isdigit():
        return int(os.environ["LOCAL_RANK"]) % module.device_count()
    return module.current_device()


def _route_naming(original):
    """Names twins after their groups, so that the other groups keep the names that they have in traces."""
    @functools.wraps(original)
    def named(*args, **kwargs):
        if _local.naming is not None:
            return _local.naming
        _local.named = original(*args, **kwargs)
        return _local.named

    return named


def _route_new_group(original):
    names = tuple(inspect.signature(original).parameters)

    @functools.wraps(original)
    def routed(*args, **kwargs):
        if _local.passing:
            return original(*args, **kwargs)
        with _pass():
            group = original(*args, **kwargs)
        call = _arguments(names, args, kwargs)
        ranks = call.get("ranks")
        ranks = list(range(dist.get_world_size())) if ranks is None else [int(r) for r in ranks]
        if call.get("sort_ranks", True):
            ranks.sort()
        local = bool(call.get("use_local_synchronization"))
        member = dist.get_rank() in ranks
        if not member and local:
            return group
        config = call.get("backend") or c10d._world.pg_map[c10d._get_default_group()][0]
        name = group.group_name if member else _local.named
        _adopt(group if member else None, ranks, name, _new_description(call), str(config), local)
        return group

    return routed


def _new_description(call):
    return call.get("group_desc") or "undefined"  # as PyTorch fills it in


def _route_split_group(original):
    @functools.wraps(original)
    def routed(*args, **kwargs):
        with _pass():
            group = original(*args, **kwargs)
        if isinstance(group, dist.ProcessGroup) and not _local.passing and group not in _groups:
            _adopt(group, dist.get_process_group_ranks(group), group.group_name, _description(group),
                   str(c10d._world.pg_backend_config[group]), local=True)
        return group

    return routed


def _route_init(original):
    @functools.wraps(original)
    def routed(*args, **kwargs):
        with _pass():
            original(*args, **kwargs)
        refresh()

    return routed


def _route_destroy(original):
    @functools.wraps(original)
    def routed(group=None):
        _in_flight.clear()
        if group is None or group == dist.group.WORLD:
            _groups.clear()
            _twins.clear()
        else:
            entry = _groups.pop(group, None)
            for _, twin in sorted(entry.twins.items() if entry else ()):
                _twins.discard(twin)
                original(twin)
        return original(group)

    return routed


def _route_check_op(original):
    """P2POp compares its function with PyTorch's by identity: those from before install() count too."""
    @functools.wraps(original)
    def check(op):
        name = getattr(op, "__name__", "")
        return original(getattr(c10d, name) if name in ("isend", "irecv") else op)

    return check


# Patches


def _patch_all():
    for name, describe in _PUBLIC.items():
        if hasattr(c10d, name):
            original = getattr(c10d, name)
            _patch(name, original, _route_public(name, original, describe))
    for name, describe in _FUNCTIONAL.items():
        if hasattr(functional, name):
            original = getattr(functional, name)
            _patch(name, original, _route_functional(original, describe))
    for name, route in (("batch_isend_irecv", _route_batch), ("_coalescing_manager", _route_manager),
                        ("_process_group_name", _route_naming), ("_new_group_with_tag", _route_new_group),
                        ("split_group", _route_split_group), ("init_process_group", _route_init),
                        ("destroy_process_group", _route_destroy), ("_check_op", _route_check_op)):
        original = getattr(c10d, name, None)
        if original is None:
            if name == "split_group":
                continue
            uninstall()
            raise MixError("torch %s has no %s: this module knows 2.2 to 2.15" % (torch.__version__, name))
        _original[name] = original
        _patch(name, original, route(original))


def _patch(name, original, routed):
    """Replaces a function wherever PyTorch's distributed modules name it."""
    for module in [m for key, m in sys.modules.items() if key.startswith("torch.distributed") and m is not None]:
        if vars(module).get(name) is original:
            setattr(module, name, routed)
            _patched.append((module, name, original))
