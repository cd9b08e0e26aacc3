"""Checks the PyTorch module that applies a mix, on this machine's CPUs: results, routes, Work, groups, DDP, FSDP.

Usage: python check_shim.py [SECTION...]

Runs replay/shim/testdata/checked.py (as mixdown writes it, its tests see to that) in jobs of four ranks with Gloo
and a stand-in for a second library: a process group of Python that counts its calls and leaves them to a Gloo of
its own. Each call is made without the module first; with it the result must be the same, the stand-in must have
been called if and only if mixdown's decision for that call (checked.decisions.jsonl, written by the Go packages)
says so, and the module must have counted just that. Each section is one line of output that begins with "pass" or
"FAIL"; the exit status is 1 when there is any of the last.
"""

import argparse
import collections
import contextlib
import datetime
import importlib.util
import inspect
import io
import json
import logging
import os
import sys
import tempfile
import time
import warnings
from random import Random

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.distributed_c10d as c10d
import torch.multiprocessing as mp

warnings.simplefilter("ignore")

RANKS = 4
LIMIT = datetime.timedelta(seconds=60)  # after which what doesn't come is an error
HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "..", "..", "replay", "shim", "testdata")
early_all_reduce, early_isend, early_irecv = dist.all_reduce, dist.isend, dist.irecv  # names from before install()


def load():
    """The module, as "import mixdown_shim" loads it."""
    spec = importlib.util.spec_from_file_location("mixdown_shim", os.path.join(EXPECTED, "checked.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["mixdown_shim"] = module
    spec.loader.exec_module(module)
    return module


def decisions():
    """mixdown's backend by operation, bytes (-1 for not known) and group."""
    with open(os.path.join(EXPECTED, "checked.decisions.jsonl")) as f:
        rows = [json.loads(line) for line in f]
    return {(r["op"], size, r["group"]): r["backend"] for r in rows for size in r["bytes"]}


# The second library

COLLECTIVES = [name for name in dir(dist.ProcessGroupGloo) if name.strip("_").split("_")[0] in (
    "allreduce", "allgather", "all", "alltoall", "barrier", "broadcast", "gather", "recv", "reduce", "scatter", "send")]


class Standin(dist.ProcessGroup):
    calls = collections.Counter()

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self.gloo = dist.ProcessGroupGloo(store, rank, size, timeout)

    def getBackendName(self):
        return "standin"

    def _get_backend(self, device):
        return self.gloo

    def _set_group_name(self, name):
        self.given_name = name

    group_name = property(lambda self: self.given_name)


def _counting(name):
    def method(self, *args, **kwargs):
        Standin.calls[name] += 1
        return getattr(self.gloo, name)(*args, **kwargs)
    return method


for _name in COLLECTIVES:
    setattr(Standin, _name, _counting(_name))


def register():
    dist.Backend.register_backend("standin", Standin, devices=["cpu"])


# Calls

Call = collections.namedtuple("Call", "label op bytes group run")  # op None: only the results count


def make_groups():
    """Overlapping groups by description, those that this rank is in."""
    described = "group_desc" in inspect.signature(dist.new_group).parameters
    groups = {"default_pg": dist.group.WORLD}
    for description, ranks in (("tp", [0, 1]), ("tp", [2, 3]), ("odd", [1, 2, 3])):
        group = dist.new_group(ranks, **(dict(group_desc=description) if described else {}))
        if dist.get_rank() in ranks:
            groups[description] = group
    return groups


def numbers(count, *salt):
    return torch.arange(count, dtype=torch.float32) % 97 + sum(31 ** i * s for i, s in enumerate(salt, 1)) % 89


def waited(work):
    work.wait()
    assert work.is_completed()


def calls_of(description, group, elements):
    """The calls in one group with one size. A tensor has 4 x elements bytes."""
    ranks = dist.get_process_group_ranks(group)
    n, me, rank = len(ranks), ranks.index(dist.get_rank()), dist.get_rank()
    size = 4 * elements
    right, left = ranks[(me + 1) % n], ranks[me - 1]

    def all_reduce(op):
        def run():
            t = numbers(elements, rank)
            dist.all_reduce(t, op, group)
            return t
        return run

    def all_reduce_async():
        t = numbers(elements, rank)
        waited(dist.all_reduce(t, group=group, async_op=True))
        return t

    def future():
        work = dist.all_reduce(numbers(elements, rank), group=group, async_op=True)
        found = work.get_future().then(lambda f: f.value()[0] * 2).wait()
        return found

    def reduce():
        t = numbers(elements, rank)
        dist.reduce(t, ranks[-1], group=group)
        return t if rank == ranks[-1] else None

    def broadcast():
        t = numbers(elements, rank)
        dist.broadcast(t, ranks[1], group=group)
        return t

    def all_gather():
        found = [torch.zeros(elements) for _ in range(n)]
        waited(dist.all_gather(found, numbers(elements, rank), group, async_op=True))
        return found

    def all_gather_into_tensor():
        found = torch.zeros(n * elements)
        dist.all_gather_into_tensor(found, numbers(elements, rank), group)
        return found

    def reduce_scatter():
        found = torch.zeros(elements)
        dist.reduce_scatter(found, [numbers(elements, rank, r) for r in range(n)], group=group)
        return found

    def reduce_scatter_tensor():
        found = torch.zeros(elements)
        dist.reduce_scatter_tensor(found, numbers(n * elements, rank), group=group)
        return found

    def all_to_all_single():
        found = torch.zeros(n * elements)
        dist.all_to_all_single(found, numbers(n * elements, rank), group=group)
        return found

    def uneven():
        given = [1 + (me + 2 * r) % 3 for r in range(n)]  # rows of elements
        taken = [1 + (r + 2 * me) % 3 for r in range(n)]
        found = torch.zeros(sum(taken), elements)
        rows = numbers(sum(given) * elements, rank).view(-1, elements)
        waited(dist.all_to_all_single(found, rows, taken, given, group, async_op=True))
        return found

    def sized():
        with sys.modules["mixdown_shim"].sized(1 << 17):
            return uneven()

    def all_to_all():
        found = [torch.zeros(elements) for _ in range(n)]
        dist.all_to_all(found, [numbers(elements, rank, r) for r in range(n)], group=group)
        return found

    def gather():
        found = [torch.zeros(elements) for _ in range(n)] if me == 0 else None
        dist.gather(numbers(elements, rank), found, ranks[0], group)
        return found

    def scatter():
        found = torch.zeros(elements)
        dist.scatter(found, [numbers(elements, r) for r in range(n)] if me == 1 else None, ranks[1], group=group)
        return found

    def barrier():
        dist.barrier(group)

    def send_first():  # the other half receives first
        found = torch.zeros(elements)
        if me == 0:
            dist.send(numbers(elements, rank), right, group, tag=3)
        else:
            dist.recv(found, left, group, tag=3)
            if me < n - 1:
                dist.send(found + 1, right, group, tag=3)
        return found

    def isend():
        found = torch.zeros(elements)
        works = [dist.irecv(found, left, group), dist.isend(numbers(elements, rank), right, group)]
        for work in works:
            waited(work)
        return found

    def batch(send, receive):
        def run():
            found = torch.zeros(elements)
            works = dist.batch_isend_irecv([dist.P2POp(send, numbers(elements, rank), right, group),
                                            dist.P2POp(receive, found, left, group)])
            for work in works:
                waited(work)
            return found
        return run

    def coalesced(async_ops):
        def run():
            tensors = [numbers(elements, rank, i) for i in range(3)]
            with c10d._coalescing_manager(group, async_ops=async_ops) as manager:
                for t in tensors:
                    dist.all_reduce(t, group=group)
            if async_ops:
                manager.wait()
            return tensors
        return run

    def coalesced_gather():
        found = [torch.zeros(n * elements) for _ in range(2)]
        with c10d._coalescing_manager(group, async_ops=True) as manager:
            for i, f in enumerate(found):
                dist.all_gather_into_tensor(f, numbers(elements, rank, i), group)
        manager.wait()
        return found

    def in_functions(name, *args):
        def run():
            found = getattr(functional, name)(numbers(n * elements, rank), *args, group)
            return functional.wait_tensor(found)
        return run

    def functional_uneven():
        given = [elements * (1 + (me + 2 * r) % 3) for r in range(n)]
        taken = [elements * (1 + (r + 2 * me) % 3) for r in range(n)]
        return functional.wait_tensor(functional.all_to_all_single(numbers(sum(given), rank), taken, given, group))

    for label, op, size, run in (
            ("all_reduce", "all_reduce", size, all_reduce(dist.ReduceOp.SUM)),
            ("all_reduce max", "all_reduce", size, all_reduce(dist.ReduceOp.MAX)),
            ("all_reduce async", "all_reduce", size, all_reduce_async),
            ("all_reduce future", "all_reduce", size, future),
            ("reduce", "reduce", size, reduce),
            ("broadcast", "broadcast", size, broadcast),
            ("all_gather", "all_gather", n * size, all_gather),
            ("all_gather_into_tensor", "all_gather", n * size, all_gather_into_tensor),
            ("reduce_scatter", "reduce_scatter", n * size, reduce_scatter),
            ("reduce_scatter_tensor", "reduce_scatter", n * size, reduce_scatter_tensor),
            ("all_to_all_single", "all_to_all", n * size, all_to_all_single),
            ("all_to_all_single uneven", "all_to_allv", -1, uneven),
            ("all_to_all_single uneven, sized", "all_to_allv", 1 << 17, sized),
            ("all_to_all", "all_to_all", -1, all_to_all),
            ("gather", "gather", n * size, gather),
            ("scatter", "scatter", n * size, scatter),
            ("barrier", "barrier", 0, barrier),
            ("send", None, 0, send_first),
            ("isend", "send and recv", size, isend),
            ("batch", "batch", -1, batch(dist.isend, dist.irecv)),
            ("batch, early names", "batch", -1, batch(early_isend, early_irecv)),
            ("coalesced", "all_reduce", 3 * size, coalesced(False)),
            ("coalesced async", "all_reduce", 3 * size, coalesced(True)),
            ("coalesced gathers", "all_gather", 2 * n * size, coalesced_gather),
            ("functional all_reduce", "all_reduce", n * size, in_functions("all_reduce", "sum")),
            ("functional all_gather", "all_gather", n * n * size, in_functions("all_gather_tensor", 0)),
            ("functional reduce_scatter", "reduce_scatter", n * size, in_functions("reduce_scatter_tensor", "sum", 0)),
            ("functional broadcast", "broadcast", n * size, in_functions("broadcast", 0)),
            ("functional all_to_all", "all_to_allv", -1, functional_uneven)):
        if label == "functional broadcast" and description != "default_pg":
            continue  # its root is a global rank in PyTorch 2.2, and one in the group later
        yield Call("%s %s %d" % (label, description, elements), op, size, description, run)


def object_calls(group):
    rank = dist.get_rank()

    def gather():
        found = [None] * dist.get_world_size(group)
        dist.all_gather_object(found, {"rank": rank, "pad": "x" * 700 * rank}, group)
        return found

    def broadcast():
        found = [rank, "y" * 5000] if rank == 1 else [None, None]
        dist.broadcast_object_list(found, 1, group)
        return found

    yield Call("all_gather_object", None, 0, "", gather)
    yield Call("broadcast_object_list", None, 0, "", broadcast)


def overlap(groups):
    """Asynchronous collectives of all groups in flight together, waited for from the last to the first."""
    def run():
        works, found = [], []
        for elements in (16, 4096):
            for group in groups.values():
                t, u = numbers(elements, dist.get_rank()), torch.zeros(elements * dist.get_world_size(group))
                works.append(dist.all_reduce(t, group=group, async_op=True))
                works.append(dist.all_gather_into_tensor(u, numbers(elements, dist.get_rank()), group, async_op=True))
                found += [t, u]
        for work in reversed(works):
            work.wait()
        return found
    return Call("overlap", None, 0, "", run)


def all_calls(groups):
    for description, group in groups.items():
        for elements in (64, 1024, 16384):
            yield from calls_of(description, group, elements)
    yield from object_calls(groups["default_pg"])
    yield overlap(groups)


def same(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def attempt(call):
    """The result of a call, and whether Gloo has it."""
    try:
        return call.run(), True
    except (RuntimeError, AttributeError, NotImplementedError, ValueError) as refusal:
        message = str(refusal).lower()
        if any(word in message for word in ("support", "not implemented", "unavailable", "no attribute", "can't find")):
            return None, False
        raise


# Sections: each runs on all ranks, and gives what to say of it


def operations(shim, install_first=False):
    if install_first:  # the twins come with the groups
        shim.install()
        start()
    else:
        start()
    groups = make_groups()
    if install_first:
        shim.uninstall()
    plain = {c.label: attempt(c) for c in all_calls(groups)}
    assert set(Standin.calls) <= {"allgather"}, "used before it is due, but for its warm-up"
    shim.install()
    Standin.calls.clear()
    expected, described = decisions(), hasattr(dist.group.WORLD, "group_desc")
    routed, seen, missing = collections.Counter(), set(), []
    for call in all_calls(groups):
        before, (calls, size) = sum(Standin.calls.values()), tally(shim)
        want, possible = plain[call.label]
        if not possible:
            missing.append(call.label.split(" " + call.group)[0])
            continue
        found = call.run()
        assert same(found, want), (call.label, found, want)
        if call.op is None:
            continue
        for op in call.op.split(" and "):
            group = call.group if described else "default_pg"
            backend = expected[op, call.bytes, group]
            seen.add(backend)
            routed[backend] += 1
            calls[op, groups[call.group].group_name, backend] += 1
            size[op, groups[call.group].group_name, backend] += max(call.bytes, 0)
        used = sum(Standin.calls.values()) - before
        assert (used > 0) == (backend == "standin"), (call.label, backend, used, Standin.calls)
        assert tally(shim) == (calls, size), (call.label, calls, size, shim.counts())
    assert seen == {"gloo", "standin"}
    missing = ", ".join(sorted(set(missing)))
    return "%d calls on rank 0 the same as without, %d on gloo and %d on standin as mixdown decides%s" % (
        sum(routed.values()), routed["gloo"], routed["standin"], "; this Gloo has no " + missing if missing else "")


def tally(shim):
    """What the module has counted: calls and bytes by operation, group and backend."""
    calls, size = collections.Counter(), collections.Counter()
    for c in shim.counts():
        calls[c["op"], c["group"], c["backend"]] += c["calls"]
        size[c["op"], c["group"], c["backend"]] += c["bytes"]
    return calls, size


def before_init(shim):
    return operations(shim, install_first=True)


def names(shim):
    """Groups keep the names that they have in traces of the job without the module."""
    start()
    plain = [g.group_name for g in make_groups().values()]
    dist.destroy_process_group()
    assert shim.install()
    start("second")
    groups = make_groups()
    assert [g.group_name for g in groups.values()] == plain, (plain, groups)
    made = len(c10d._world.pg_map)
    if "odd" in groups:
        dist.destroy_process_group(groups["odd"])
        assert len(c10d._world.pg_map) == made - 2, "the twin is still there"
    return "names %s with and without; a group goes with its twins" % ", ".join(plain)


def switched_off(shim):
    os.environ["MIXDOWN_SHIM"] = "off"
    start()
    assert shim.install() is False and dist.all_reduce is early_all_reduce
    groups = make_groups()
    for call in all_calls(groups):
        attempt(call)
    assert not Standin.calls and not shim.counts()
    assert len(c10d._world.pg_map) == len(groups)
    return "nothing is touched"


def refusals(shim):
    start()
    Rule = shim.Rule
    for rule, words in ((Rule("*=nowhere", None, 0, None, None, "nowhere"), "has no backend 'nowhere'"),
                        (Rule("*=nccl", None, 0, None, None, "nccl"), "nccl"),
                        (Rule("*=mpi", None, 0, None, None, "mpi"), "mpi")):
        shim.RULES = (rule,)
        try:
            shim.install()
        except shim.MixError as refusal:
            assert words in str(refusal) and "rule 1" in str(refusal), refusal
        else:
            raise AssertionError("not refused: %s" % rule.text)
        assert dist.all_reduce is early_all_reduce
    return "unknown backend, backend without its device, MPI that isn't built in: refused, and nothing changed"


def logs(shim):
    start()
    stream = io.StringIO()
    logging.getLogger("mixdown_shim").addHandler(logging.StreamHandler(stream))
    logging.getLogger("mixdown_shim").setLevel(logging.INFO)
    shim.install()
    for _ in range(3):
        dist.all_reduce(torch.ones(1024))
        dist.broadcast(torch.ones(4), 0)
    text = stream.getvalue()
    assert text.count("rule 4 (") == 1 and text.count("rule 15 (") == 1, text
    assert "members of all_to_allv know no common size" in text, text
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        shim._print_counts()
    assert "rule 4 (all_reduce@>=1KiB=standin): all_reduce, group 0, on standin: 3 calls, 12288 bytes" in \
        printed.getvalue(), printed.getvalue()
    return "one line for each rule; " + printed.getvalue().splitlines()[-1]


def order(shim):
    """Who waits for whom. Rank 3 comes late to the first collective, so that on rank 0 it is in flight until then.

    The rule for GPUs is checked here as if it held on the host, that for MPI as if the stand-in were MPI.
    """
    start()
    groups = make_groups()
    world, odd = groups["default_pg"], groups.get("odd")
    shim.install()

    def second_waits(second_on_standin, other_group=False):
        """Whether a rank that begins a second collective has ended the first then."""
        dist.barrier()
        if dist.get_rank() == 3:
            time.sleep(0.5)
        first = dist.all_reduce(torch.ones(1024), group=odd if other_group else world, async_op=True)
        if other_group:
            second = dist.all_reduce(torch.ones(1024), async_op=True)
        elif second_on_standin:
            second = dist.all_reduce(torch.ones(2048), async_op=True)
        else:
            second = dist.all_reduce(torch.ones(16), async_op=True)
        done = first.is_completed()
        first.wait()
        second.wait()
        return done

    for as_gpu in (False, True):
        shim._SIDE_BY_SIDE = () if as_gpu else (None, "cpu")
        if dist.get_rank() != 3:
            assert second_waits(False) == as_gpu, "another backend, GPU rule %s" % as_gpu
            assert not second_waits(True), "the same backend"
        else:
            second_waits(False), second_waits(True)
    shim._SIDE_BY_SIDE = (None, "cpu")
    for as_mpi in (False, True):
        shim._ONE_AT_A_TIME = ("standin",) if as_mpi else ()
        if odd is None:
            dist.barrier()
            dist.all_reduce(torch.ones(1024))
        else:
            done = second_waits(True, other_group=True)
            assert dist.get_rank() == 3 or done == as_mpi, "another group, MPI rule %s" % as_mpi
    return "another backend is waited for on a GPU and not on the host, another group on MPI alone"


def stress(shim, count=400):
    """A random program of asynchronous and other operations in overlapping groups, the same order on all ranks."""
    start()
    shim.install()
    groups = make_groups()
    random = Random(11)
    pending, checked = [], collections.Counter()

    def settle(index):
        work, found, want, label = pending.pop(index)
        if work is not None:
            work.wait()
        assert same(found, want), (label, found, want)

    for step in range(count):
        description = random.choice(["default_pg", "tp", "odd"])  # drawn on all ranks, also on those that are not in it
        kind, elements, wait = random.randrange(5), random.choice([1, 100, 300, 5000]), random.random() < 0.4
        index, root = random.random(), random.randrange(2)
        group = groups.get(description)
        if group is not None:
            ranks = dist.get_process_group_ranks(group)
            n, me, rank = len(ranks), dist.get_group_rank(group, dist.get_rank()), dist.get_rank()
            t = numbers(elements, rank, step)
            if kind == 0:
                want = sum(numbers(elements, r, step) for r in ranks)
                work, found = dist.all_reduce(t, group=group, async_op=not wait), t
            elif kind == 1:
                want = numbers(elements, ranks[root], step)
                work, found = dist.broadcast(t, ranks[root], group=group, async_op=not wait), t
            elif kind == 2:
                want = torch.cat([numbers(elements, r, step) for r in ranks])
                found = torch.zeros(n * elements)
                work = dist.all_gather_into_tensor(found, t, group, async_op=not wait)
            elif kind == 3:
                want = torch.cat([numbers(n * elements, r, step)[me * elements:(me + 1) * elements] for r in ranks])
                found = torch.zeros(n * elements)
                work = dist.all_to_all_single(found, numbers(n * elements, rank, step), group=group, async_op=not wait)
            else:
                want, found = numbers(elements, ranks[me - 1], step), torch.zeros(elements)
                works = dist.batch_isend_irecv([dist.P2POp(dist.irecv, found, ranks[me - 1], group),
                                                dist.P2POp(dist.isend, t, ranks[(me + 1) % n], group)])
                for w in works[1:]:
                    w.wait()
                work = works[0]
            pending.append((work, found, want, (step, kind, description)))
            checked[description] += 1
        while len(pending) > 12:
            settle(int(index * len(pending)))
    while pending:
        settle(-1)
    used = sum(Standin.calls.values())
    assert 0 < used < sum(checked.values()) * 2
    return "%d operations, up to 12 in flight, on rank 0 %s; %d calls of standin" % (
        count, ", ".join("%d in %s" % (n, d) for d, n in sorted(checked.items())), used)


def cost(shim):
    """What the module adds to a call: of a group of four here, and of its own part alone."""
    start()
    t = torch.ones(16)  # stays on the group itself

    def per_call(run, count):
        run()
        dist.barrier()
        begun = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - begun) / count * 1e6

    rounds = []
    for _ in range(5):
        plain = per_call(lambda: dist.all_reduce(t), 200)
        shim.install()
        routed = per_call(lambda: dist.all_reduce(t), 200)
        shim.uninstall()
        rounds.append((plain, routed))
    nothing = shim._route_public("all_reduce", lambda tensor, op=None, group=None, async_op=False: None,
                                 shim._PUBLIC["all_reduce"])
    own = per_call(lambda: nothing(t), 20000)
    plain, routed = (sorted(column)[2] for column in zip(*rounds))
    return "all_reduce of 64 bytes: %.0f us without, %.0f us with; the module's part alone %.1f us" % (
        plain, routed, own)


def deepspeed(shim):
    """DeepSpeed's communication is routed, and its logger logs it."""
    os.environ.update(DS_ACCELERATOR="cpu", LOCAL_RANK=os.environ["RANK"], WORLD_SIZE=str(RANKS))
    if importlib.util.find_spec("deepspeed") is None:
        return "not checked: no deepspeed here"
    shim.install()
    with contextlib.redirect_stdout(io.StringIO()):
        import deepspeed as ds
        start()
        ds.init_distributed("gloo")
        group = ds.comm.new_group([0, 1, 2, 3])
        ds.comm.configure(enabled=True, prof_all=True)
        Standin.calls.clear()
        t = numbers(1024, dist.get_rank())
        ds.comm.all_reduce(t, group=group)
        gathered = torch.zeros(RANKS * 64)
        ds.comm.all_gather_into_tensor(gathered, numbers(64, dist.get_rank()), group=group)
        summary = ds.comm.log_summary(return_dict=True)["summary"]
    assert same(t, sum(numbers(1024, r) for r in range(RANKS)))
    assert same(gathered, torch.cat([numbers(64, r) for r in range(RANKS)]))
    routed = {(c["op"], c["bytes"]): c["backend"] for c in shim.counts() if c["group"] == group.group_name}
    assert routed == {("all_reduce", 4096): "standin", ("all_gather", 1024): "standin"}, routed
    assert Standin.calls["allreduce"] == 1
    return "DeepSpeed %s: all_reduce and all_gather_into_tensor on standin; its logger has %s" % (
        ds.__version__, ", ".join(sorted(summary)))


def ddp(shim):
    """Gradients with the hook, with PyTorch's own hook, and without any, before and after."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    start()
    groups = make_groups()

    def train(group, hook=None, state=None):
        torch.manual_seed(7)
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))
        model = torch.nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.01)
        if hook:
            model.register_comm_hook(state, hook)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            model(numbers(64 * 4, dist.get_rank(), step).view(4, 64) / 97).square().mean().backward()
            optimizer.step()
        return [p.detach().clone() for p in model.parameters()]

    group = groups["tp"]
    want, want_group = train(None), train(group)
    shim.install()
    Standin.calls.clear()
    assert same(train(None), want)
    assert not Standin.calls["allreduce"], "the reducer doesn't go through Python"
    torch.testing.assert_close(train(None, shim.ddp_comm_hook), want)
    first = Standin.calls["allreduce"]
    assert first > 0
    torch.testing.assert_close(train(group, shim.ddp_comm_hook, group), want_group)
    second = Standin.calls["allreduce"] - first
    torch.testing.assert_close(train(None, default_hooks.allreduce_hook), want)
    third = Standin.calls["allreduce"] - first - second
    assert second > 0 and third == first
    return "the same parameters after three steps; all_reduces on standin: %d with the hook, %d in a group, " \
        "%d with PyTorch's own hook, 0 without" % (first, second, third)


def fsdp(shim):
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        try:
            from torch.distributed._composable.fsdp import fully_shard
        except ImportError:
            return "not checked: this PyTorch has no fully_shard"
    from torch.distributed.device_mesh import init_device_mesh
    start()

    def train():
        torch.manual_seed(7)
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        for layer in (model[0], model[2], model):
            fully_shard(layer, mesh=mesh)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            model(numbers(64 * 4, dist.get_rank(), step).view(4, 64) / 97).square().mean().backward()
            optimizer.step()
        return [p.detach().full_tensor() for p in model.parameters()]

    try:
        want = train()
    except RuntimeError as refusal:
        return "not checked: this PyTorch's fully_shard needs a GPU (%s)" % str(refusal).splitlines()[0][:80]
    shim.install()
    Standin.calls.clear()
    torch.testing.assert_close(train(), want)
    assert Standin.calls, shim.counts()
    ops = sorted({c["op"] for c in shim.counts() if c["backend"] == "standin" and c["op"] != "barrier"})
    return "the same parameters after three steps, on a mesh made with the module; on standin %s" % ", ".join(ops)


def compiled(shim):
    """A graph of torch.compile keeps the group's own backend, and is as whole as without the module."""
    start()
    world = dist.group.WORLD

    def step(t):
        dist.all_reduce(t)
        u = torch.zeros(t.numel() * RANKS)
        dist.all_gather_into_tensor(u, t * 2, world)
        return u + 1

    def graph(whole):
        torch._dynamo.reset()
        return torch.compile(step, backend="eager", fullgraph=whole)(numbers(1024, dist.get_rank()))

    whole = True
    try:
        want = graph(True)
    except Exception:  # Dynamo's own errors have no common class
        whole, want = False, step(numbers(1024, dist.get_rank()))
    shim.install()
    Standin.calls.clear()
    assert same(graph(whole), want)
    used = sum(Standin.calls.values())
    assert not (whole and used)
    return "the same result; %s, %d calls of standin" % ("one graph as without" if whole else "not one graph", used)


SECTIONS = {f.__name__: f for f in
            (operations, before_init, names, switched_off, refusals, logs, order, stress, ddp, fsdp, compiled, deepspeed,
             cost)}


# Jobs


def start(suffix=""):
    dist.init_process_group("gloo", init_method="file://" + os.environ["STORE"] + suffix,
                            rank=int(os.environ["RANK"]), world_size=RANKS, timeout=LIMIT)


def _rank_main(rank, section, scratch):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    os.environ.update(GLOO_SOCKET_IFNAME="lo", STORE=os.path.join(scratch, "store"), RANK=str(rank))
    register()
    said = SECTIONS[section](load())
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
    if rank == 0:
        with open(os.path.join(scratch, "said"), "w") as f:
            f.write(said)


def check(section):
    with tempfile.TemporaryDirectory() as scratch:
        try:
            mp.start_processes(_rank_main, args=(section, scratch), nprocs=RANKS, start_method="fork")
        except mp.ProcessRaisedException as failure:
            print("FAIL %s: %s" % (section, reason(str(failure))), flush=True)
            if os.environ.get("CHECK_TRACE"):
                print(failure)
            return False
        with open(os.path.join(scratch, "said")) as f:
            print("pass %s: %s" % (section, f.read()), flush=True)
    return True


def reason(message):
    """The first error in the trace that a process left: the others follow from it."""
    lines = [line.strip() for line in message.splitlines()]
    errors = [line for line in lines if "Error: " in line or "Exception: " in line]
    return errors[0] if errors else lines[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    sections = parser.parse_args().sections or list(SECTIONS)
    good = [check(section) for section in sections]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
