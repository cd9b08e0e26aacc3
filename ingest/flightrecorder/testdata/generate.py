"""Makes the fixtures of this folder. Run in it:

    python3 generate.py            nccl.json, nccl_p*.pickle, plain_p*.pickle, plain_p*.txt
    python2.7 generate.py          plain_py27_p*.pickle
    python3 generate.py gloo       gloo_rank0.pickle, gloo_rank0.json: a real run, needs PyTorch
    python3 generate.py hostile    prints the pickles of pickle_test.go that ask for code

Made with Python 3.11.7, Python 2.7.18 and PyTorch 2.15.0. nccl.* is written by
hand after FlightRecorderDetail.hpp: no machine with two GPUs was there.
"""
import json
import os
import pickle
import sys
import time

PLAIN = [
    None, True, False, 0, 1, 255, 256, 65535, 65536, -1, 2**31 - 1, -2**31, 2**31, 2**63 - 1, -2**63,
    2**63, -2**63 - 1, 2**200, -2**200, 1.5, -0.25, 1e300, u"", u"plain", u"e\u0301 \u2028 \U0001F600 \\ ' \" \n \t \x01",
    u"x" * 300, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], {}, [[[]]], {u"a": {u"b": [1, 2]}, u"c": ()}, {1: u"one", None: 2},
]
SHARED = [1, 2]
PLAIN += [SHARED, SHARED, (SHARED, SHARED)]


def entry(i, **more):
    e = {
        "record_id": i, "pg_id": 0, "process_group": ("0", "default_pg"), "thread_name": "pt_main", "thread_id": "7",
        "collective_seq_id": 0, "p2p_seq_id": 0, "op_id": i, "profiling_name": "nccl:all_reduce",
        "time_created_ns": 1796030320880424867 + i * 1000000, "input_sizes": [[4, 3]], "input_dtypes": ["Float"],
        "output_sizes": [[4, 3]], "output_dtypes": ["Float"], "state": "scheduled", "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None, "retired": False, "timeout_ms": 600000, "is_p2p": False,
    }
    e.update(more)
    return e


FRAMES = [{"name": "all_reduce", "filename": "distributed_c10d.py", "line": 2696}, {"name": "main", "filename": "train.py", "line": 34}]


def nccl(is_json):
    no = 0 if is_json else None
    tp, pp = {"pg_id": 1, "process_group": ("1", "mesh_tp")}, {"pg_id": 2, "process_group": ("2", "undefined")}
    p2p = dict(pp, is_p2p=True, p2p_seq_id=1, collective_seq_id=3)
    none = {"input_sizes": [], "input_dtypes": [], "output_sizes": [], "output_dtypes": []}
    half = {"input_sizes": [[2, 8]], "input_dtypes": ["Half"], "output_sizes": [[2, 8]], "output_dtypes": ["Half"]}
    entries = [
        entry(10, collective_seq_id=5, duration_ms=1.25, state="completed", retired=True,
              time_discovered_started_ns=1796030320891000000, time_discovered_completed_ns=1796030320893000000),
        entry(11, collective_seq_id=8, profiling_name="nccl:_all_gather_base", state="completed", retired=True,
              time_discovered_started_ns=1796030320892000000, time_discovered_completed_ns=1796030320892000000,
              output_sizes=[[8, 3]], **tp),
        entry(12, profiling_name="nccl:send 0->1", **dict(p2p, **half)),
        entry(13, profiling_name="nccl:recv 0<-1", **dict(p2p, **half)),
        entry(14, profiling_name="nccl:coalesced", state="completed", retired=True, duration_ms=0.5,
              time_discovered_started_ns=1796030320895000000, time_discovered_completed_ns=1796030320896000000, **dict(p2p, **none)),
        entry(15, profiling_name="nccl:reduce_scatter_tensor_coalesced", collective_seq_id=9, **dict(tp, output_sizes=[[2, 3]])),
        entry(16, profiling_name="nccl:recv 0<-3", **dict(pp, is_p2p=True, p2p_seq_id=2)),
        entry(17, profiling_name="nccl:barrier", collective_seq_id=6, state="started", time_discovered_started_ns=1796030320899000000, **none),
        entry(18, profiling_name="nccl:split", collective_seq_id=7, **none),
    ]
    for e in entries:
        for k in ("time_discovered_started_ns", "time_discovered_completed_ns"):
            if e[k] is None:
                e[k] = no
        if not is_json:
            e["frames"] = FRAMES
    status = {"0": (7, 6, 5), "1": (9, 8, 8), "2": (3, -1, 3)}
    text = str if is_json else int
    return {
        "version": "2.10", "comm_lib_version": "2.27.3", "nccl_comm_state": {},
        "pg_config": {
            "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
            "1": {"name": "1", "desc": "mesh_tp", "ranks": "[0, 1]"},
            "2": {"name": "2", "desc": "undefined", "ranks": "[0, 2]"},
            "3": {"name": "3", "desc": "idle", "ranks": "[1, 3]"},
        },
        "pg_status": {k: {"last_enqueued_collective": text(a), "last_started_collective": text(b), "last_completed_collective": text(c)}
                      for k, (a, b, c) in status.items()},
        "entries": entries,
    }


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)


def gloo_rank(rank, n):
    import torch
    import torch.distributed as dist
    from torch._C import _distributed_c10d as c10d
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29731", TORCH_FR_BUFFER_SIZE="64")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=n)
    pair = dist.new_group([0, 2], group_desc="pair")
    dist.all_reduce(torch.ones(4, 3))
    dist.broadcast(torch.ones(5, dtype=torch.int64), src=1)
    dist.all_gather([torch.zeros(2) for _ in range(n)], torch.ones(2))
    if rank == 0:
        dist.send(torch.ones(7), dst=1)
    if rank == 1:
        dist.recv(torch.ones(7), src=0)
    if rank in (0, 2):
        dist.all_reduce(torch.ones(3, dtype=torch.bfloat16), group=pair)
    dist.all_to_all_single(torch.empty(n * 2), torch.ones(n * 2))
    dist.barrier()
    time.sleep(0.5)  # until the worker thread has retired the barrier
    if rank == 0:
        write("gloo_rank0.pickle", c10d._dump_fr_trace())
        dump = c10d._dump_fr_trace_json()
        write("gloo_rank0.json", dump if isinstance(dump, bytes) else dump.encode())
    dist.destroy_process_group()


class Hostile(object):
    def __reduce__(self):
        return os.system, ("true",)


class State(object):
    pass


class Persistent(pickle.Pickler):
    def persistent_id(self, obj):
        return "id" if isinstance(obj, State) else None


def hostile():
    import io
    with_state = State()
    with_state.x = 1
    for protocol in range(6):
        print("reduce %d: %r" % (protocol, pickle.dumps({"version": Hostile()}, protocol)))
        print("object %d: %r" % (protocol, pickle.dumps({"version": with_state}, protocol)))
    for protocol in (0, 2):
        b = io.BytesIO()
        Persistent(b, protocol).dump({"version": with_state})
        print("persistent %d: %r" % (protocol, b.getvalue()))
    print("set: %r" % pickle.dumps({"version": {1}}, 4))
    print("frozenset: %r" % pickle.dumps({"version": frozenset([1])}, 4))
    print("bytes 2: %r" % pickle.dumps({"version": b"\xff"}, 2))
    print("buffer: %r" % pickle.dumps({"version": pickle.PickleBuffer(bytearray(b"x"))}, 5, buffer_callback=lambda b: None))


if __name__ == "__main__":
    if sys.version_info[0] == 2:
        value = ["text", "it's \\ \n \x01", u"\u00e9\\u", 7, 2**70, True, None, 1.5, {"a": ("b",)}]
        for protocol in (0, 1, 2):
            write("plain_py27_p%d.pickle" % protocol, pickle.dumps(value, protocol))
    elif "gloo" in sys.argv:
        import torch.multiprocessing as mp
        mp.spawn(gloo_rank, (3,), nprocs=3)
    elif "hostile" in sys.argv:
        hostile()
    else:
        for protocol in range(6):
            plain = PLAIN + ([b"", b"\x00\xff" * 3, b"y" * 300] if protocol >= 3 else [])
            plain += [bytearray(b"z")] if protocol >= 5 else []
            write("plain_p%d.pickle" % protocol, pickle.dumps(plain, protocol))
            write("plain_p%d.txt" % protocol, (ascii(plain) + "\n").encode())
            write("nccl_p%d.pickle" % protocol, pickle.dumps(nccl(False), protocol))
        write("nccl.json", json.dumps(nccl(True), sort_keys=True, separators=(",", ":")).encode())
