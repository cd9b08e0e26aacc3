"""Shared by the generators: process start-up, the recorder that writes truth.json, profiling, output.

The recorder never looks at a trace. It wraps the Python entry points of torch.distributed before the
program uses them and notes what was asked for, so that truth.json can judge what an analysis of the
trace says.
"""

import contextlib
import dataclasses
import functools
import json
import os
import platform
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

import network
import sanitize

WORLD = 4


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a program is run and profiled, and what is kept of it."""

    world: int = WORLD
    wait: int = 1
    warmup: int = 2
    active: int = 3
    shapes: bool = True
    stacks: tuple = ()  # the ranks that record stacks, which are most of a trace
    execution_trace: bool = False
    keep: tuple = ()  # the ranks whose trace and truth are kept; empty for all
    start_method: str = "spawn"
    network: object = None  # network.Network: links of their own between the ranks; None for the loopback interface


# Two steps of a program: with shapes, also with the stacks of one rank, and with neither.
SHAPES = Settings(warmup=1, active=2, shapes=True)
FULL = dataclasses.replace(SHAPES, stacks=(0,))
BARE = dataclasses.replace(SHAPES, shapes=False)


def dtype_name(tensor):
    return str(tensor.dtype).removeprefix("torch.")


class Recorder:
    """Lists the communication calls of one rank, in program order, for each profiled step.

    Times are nanoseconds of time.perf_counter_ns since the start of the step.
    """

    def __init__(self, extra):
        self.extra = extra  # folder for other files that a program leaves in its set
        self.steps = []
        self.current = None
        self.within = False
        self.grouped = {}
        self.works = {}

    # Steps

    @contextlib.contextmanager
    def step(self, number, keep):
        """Covers the body of one training step; number is the N of the trace's ProfilerStep#N."""
        self.current = {"profiler_step": number, "start_unix_ns": time.time_ns(), "wall_ns": None,
                        "calls": [], "waits": [], "spans": []}
        self.origin = time.perf_counter_ns()
        self.numbers = {"batch": 0, "coalesced": 0}
        self.works.clear()
        yield
        self.current["wall_ns"] = self.now()
        if keep:
            self.steps.append(self.current)
        self.current = None

    def now(self):
        return time.perf_counter_ns() - self.origin

    @contextlib.contextmanager
    def span(self, **fields):
        """Covers a phase of the step, or the pass of one micro-batch through a stage."""
        start = self.now()
        yield
        self.current["spans"].append({**fields, "start_ns": start, "end_ns": self.now()})

    # Calls

    def install(self):
        """Replaces the communication functions of torch.distributed with recording ones."""
        self._wrap("all_reduce", self._all_reduce)
        self._wrap("reduce", self._reduce)
        self._wrap("broadcast", self._broadcast)
        self._wrap("all_gather", self._all_gather)
        # The first of each of these pairs calls the second.
        self._wrap("all_gather_into_tensor", self._all_gather_into_tensor)
        self._wrap("all_gather_single", self._all_gather_into_tensor)
        self._wrap("reduce_scatter_tensor", self._reduce_scatter_tensor)
        self._wrap("reduce_scatter_single", self._reduce_scatter_tensor)
        self._wrap("all_reduce_coalesced", self._all_reduce_coalesced)
        self._wrap("all_gather_coalesced", self._all_gather_coalesced)
        self._wrap("all_to_all_single", self._all_to_all_single)
        self._wrap("barrier", self._barrier)
        self._wrap("isend", self._isend)
        self._wrap("irecv", self._irecv)
        self._wrap("send", self._send)
        self._wrap("recv", self._recv)
        self._wrap_batch()
        self._wrap_coalescing()
        self._wrap_wait()

    def _wrap(self, name, describe):
        original = getattr(c10d, name)

        @functools.wraps(original)
        def recording(*args, **kwargs):
            if self.current is None or self.within:
                return original(*args, **kwargs)
            call = {"seq": len(self.current["calls"]), **describe(*args, **kwargs), **self.grouped}
            self.current["calls"].append(call)
            self.within = True
            call["start_ns"] = self.now()
            try:
                work = original(*args, **kwargs)
            finally:
                call["end_ns"] = self.now()
                self.within = False
            if isinstance(work, dist.Work):
                # The reference keeps the id from being used again within the step.
                self.works[id(work)] = (call["seq"], work)
            return work

        setattr(c10d, name, recording)
        setattr(dist, name, recording)

    def _wrap_batch(self):
        original = c10d.batch_isend_irecv

        @functools.wraps(original)
        def recording(p2p_op_list):
            with self._group_calls("batch"):
                return original(p2p_op_list)

        c10d.batch_isend_irecv = recording
        dist.batch_isend_irecv = recording

    def _wrap_coalescing(self):
        """The members of a coalesced call are recorded as they are made; the call itself is a span."""
        original = c10d._coalescing_manager

        @contextlib.contextmanager
        def recording(*args, **kwargs):
            if self.current is None or self.within:
                with original(*args, **kwargs) as manager:
                    yield manager
                return
            with self._group_calls("coalesced") as number, self.span(kind="coalesced", coalesced=number):
                with original(*args, **kwargs) as manager:
                    yield manager
            for work in manager.works:
                self.works[id(work)] = (len(self.current["calls"]) - 1, work)

        c10d._coalescing_manager = recording
        dist._coalescing_manager = recording

    @contextlib.contextmanager
    def _group_calls(self, key):
        if self.current is None:
            yield None
            return
        number = self.numbers[key]
        self.numbers[key] += 1
        self.grouped = {key: number}
        try:
            yield number
        finally:
            self.grouped = {}

    def _wrap_wait(self):
        original = dist.Work.wait

        def recording(work, *args, **kwargs):
            if self.current is None:
                return original(work, *args, **kwargs)
            seq, _ = self.works.get(id(work), (None, None))
            start = self.now()
            result = original(work, *args, **kwargs)
            # The work of a blocking call is not known here before the call returns, so it is the last call's.
            within_call = seq is None
            if within_call:
                seq = len(self.current["calls"]) - 1
            self.current["waits"].append(
                {"seq": seq, "within_call": within_call, "start_ns": start, "end_ns": self.now()}
            )
            return result

        dist.Work.wait = recording

    # What each call asks for

    @staticmethod
    def _group(group):
        group = group or dist.group.WORLD
        return {
            "group": group.group_name,
            "group_desc": group.group_desc,
            "group_ranks": dist.get_process_group_ranks(group),
        }

    def _all_reduce(self, tensor, op=None, group=None, async_op=False):
        n = tensor.numel()
        return {"op": "all_reduce", "async": async_op, **self._group(group), "dtype": dtype_name(tensor),
                "in_elements": n, "out_elements": n}

    def _broadcast(self, tensor, src=None, group=None, async_op=False, group_src=None):
        n = tensor.numel()
        return {"op": "broadcast", "async": async_op, **self._group(group), "dtype": dtype_name(tensor),
                "in_elements": n, "out_elements": n, "root": self._global(group, src, group_src)}

    def _reduce(self, tensor, dst=None, op=None, group=None, async_op=False, group_dst=None):
        n = tensor.numel()
        return {"op": "reduce", "async": async_op, **self._group(group), "dtype": dtype_name(tensor),
                "in_elements": n, "out_elements": n, "root": self._global(group, dst, group_dst)}

    def _all_gather(self, tensor_list, tensor, group=None, async_op=False):
        return {"op": "all_gather", "async": async_op, **self._group(group), "dtype": dtype_name(tensor),
                "in_elements": tensor.numel(), "out_elements": sum(t.numel() for t in tensor_list)}

    def _reduce_scatter_tensor(self, output, input, op=None, group=None, async_op=False):
        return {"op": "reduce_scatter", "async": async_op, **self._group(group), "dtype": dtype_name(input),
                "in_elements": input.numel(), "out_elements": output.numel()}

    def _all_reduce_coalesced(self, tensors, op=None, group=None, async_op=False):
        sizes = [t.numel() for t in tensors]
        return {"op": "all_reduce", "async": async_op, **self._group(group), "dtype": dtype_name(tensors[0]),
                "in_elements": sum(sizes), "out_elements": sum(sizes), "tensors": sizes}

    def _all_gather_coalesced(self, output_tensor_lists, input_tensor_list, group=None, async_op=False):
        sizes = [t.numel() for t in input_tensor_list]
        return {"op": "all_gather", "async": async_op, **self._group(group), "dtype": dtype_name(input_tensor_list[0]),
                "in_elements": sum(sizes), "out_elements": sum(t.numel() for ts in output_tensor_lists for t in ts),
                "tensors": sizes}

    def _all_gather_into_tensor(self, output_tensor, input_tensor, group=None, async_op=False):
        return {"op": "all_gather", "async": async_op, **self._group(group), "dtype": dtype_name(input_tensor),
                "in_elements": input_tensor.numel(), "out_elements": output_tensor.numel()}

    def _all_to_all_single(self, output, input, output_split_sizes=None, input_split_sizes=None, group=None,
                           async_op=False):
        # Splits count rows of the first dimension; the elements of one row make them elements.
        call = {"op": "all_to_all", "async": async_op, **self._group(group), "dtype": dtype_name(input),
                "in_elements": input.numel(), "out_elements": output.numel()}
        if input_split_sizes is not None:
            row = input.shape[1:].numel()
            call["op"] = "all_to_allv"
            call["in_splits"] = [rows * row for rows in input_split_sizes]
            call["out_splits"] = [rows * row for rows in output_split_sizes]
            call["row_elements"] = row
        return call

    def _barrier(self, group=None, async_op=False, device_ids=None):
        return {"op": "barrier", "async": async_op, **self._group(group)}

    def _isend(self, tensor, dst=None, group=None, tag=0, group_dst=None):
        return {"op": "send", "async": True, **self._group(group), "dtype": dtype_name(tensor),
                "in_elements": tensor.numel(), "out_elements": 0,
                "src": dist.get_rank(), "dst": self._global(group, dst, group_dst)}

    def _irecv(self, tensor, src=None, group=None, tag=0, group_src=None):
        return {"op": "recv", "async": True, **self._group(group), "dtype": dtype_name(tensor),
                "in_elements": 0, "out_elements": tensor.numel(),
                "src": self._global(group, src, group_src), "dst": dist.get_rank()}

    def _send(self, *args, **kwargs):
        return {**self._isend(*args, **kwargs), "async": False}

    def _recv(self, *args, **kwargs):
        return {**self._irecv(*args, **kwargs), "async": False}

    @staticmethod
    def _global(group, rank, group_rank):
        if rank is not None:
            return rank
        return dist.get_global_rank(group or dist.group.WORLD, group_rank)


def train(rank, recorder, step, scratch, settings):
    """Runs the steps, profiles the last of them and leaves the trace in scratch."""
    observer = None
    if settings.execution_trace:
        observer = ExecutionTraceObserver()
        observer.register_callback(os.path.join(scratch, f"et{rank}.json"))
    skipped = settings.wait + settings.warmup
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=settings.wait, warmup=settings.warmup, active=settings.active, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(os.path.join(scratch, f"rank{rank}.json")),
        record_shapes=settings.shapes,
        with_stack=rank in settings.stacks,
        execution_trace_observer=observer,
    ) as profiler:
        for index in range(skipped + settings.active):
            with recorder.step(index, keep=index >= skipped):
                step(index)
            profiler.step()
    if observer is not None:
        observer.unregister_callback()


def _rank_main(rank, program, scratch, settings):
    torch.set_num_threads(1)
    torch.manual_seed(1000 + rank)
    os.environ["GLOO_SOCKET_IFNAME"] = network.enter(settings.network, rank, scratch)
    dist.init_process_group("gloo", init_method=f"file://{scratch}/store", rank=rank, world_size=settings.world)
    recorder = Recorder(os.path.join(scratch, "extra"))
    recorder.install()
    step = program(rank, recorder)
    train(rank, recorder, step, scratch, settings)
    if hasattr(step, "finish"):
        step.finish()
    dist.barrier()
    with open(os.path.join(scratch, f"truth{rank}.json"), "w") as f:
        json.dump({"rank": rank, "steps": recorder.steps}, f)
    dist.destroy_process_group()


def generate(program, folder, about, settings=Settings(), versions=None):
    """Runs program on processes of this machine and writes traces and truth.json to folder.

    program(rank, recorder) builds the model and returns the function that runs one step; that may have
    an attribute finish, to be called after the last one.
    """
    kept = settings.keep or range(settings.world)
    with tempfile.TemporaryDirectory() as scratch:
        extra = os.path.join(scratch, "extra")
        os.mkdir(extra)
        network.start_processes(settings.network, _rank_main, (program, scratch, settings), settings.world,
                                settings.start_method, scratch)
        os.makedirs(folder, exist_ok=True)
        ranks = []
        for rank in kept:
            sanitize.pack(os.path.join(scratch, f"rank{rank}.json"),
                          os.path.join(folder, f"rank{rank}.pt.trace.json.gz"))
            if settings.execution_trace:
                os.makedirs(os.path.join(folder, "et"), exist_ok=True)
                sanitize.pack(os.path.join(scratch, f"et{rank}.json"),
                              os.path.join(folder, "et", f"rank{rank}.json.gz"))
            with open(os.path.join(scratch, f"truth{rank}.json")) as f:
                ranks.append(json.load(f))
        for name in os.listdir(extra):
            sanitize.copy(os.path.join(extra, name), os.path.join(folder, name))
    truth = {
        "about": about,
        "torch": torch.__version__,
        **(versions or {}),
        "python": platform.python_version(),
        "backend": "gloo",
        "world_size": settings.world,
        "ranks": ranks,
    }
    with open(os.path.join(folder, "truth.json"), "w") as f:
        f.write(dump(truth))


def target(name):
    """The folder to write: the only argument of the program, or the set's folder beside this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    return sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, os.pardir, name)


def generate_both(program, name, about, full=FULL, bare=BARE, versions=None):
    """Writes two sets: one with shapes, and, in a folder that ends in _bare, one with neither shapes nor stacks."""
    folder = target(name)
    generate(program, folder, about, full, versions)
    generate(program, folder + "_bare", about + ", without shapes and stacks", bare, versions)


def dump(value, depth=0):
    """JSON with each recorded call, wait and span on a line of its own."""
    pad = " " * depth
    leaf = not any(isinstance(v, (dict, list)) and v and not _flat(v) for v in _values(value))
    if not isinstance(value, (dict, list)) or not value or leaf:
        return json.dumps(value)
    if isinstance(value, dict):
        lines = [f"{pad} {json.dumps(k)}: {dump(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + pad + "}"
    lines = [f"{pad} {dump(v, depth + 1)}" for v in value]
    return "[\n" + ",\n".join(lines) + "\n" + pad + "]"


def _values(value):
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _flat(value):
    return isinstance(value, list) and not any(isinstance(v, (dict, list)) for v in value)
