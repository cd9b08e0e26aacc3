"""The jobs of what_ifs.py, and which of them is which other one with a change."""

import dataclasses

import data_parallel
import pipeline_orders
import scheduled
from network import Network
from pipeline_schedules import Config as Size

MBIT = data_parallel.MBIT


def _data_parallel():
    base = data_parallel.Config("dp4")
    yield base
    for name, change in {
        "dp4_quick_links": {"network": Network(mbit=2 * MBIT)},
        "dp4_slow_links": {"network": Network(mbit=MBIT // 2)},
        "dp4_slow_link": {"network": Network(mbit=MBIT, slower=((0, 1, MBIT // 2),))},
        "dp4_no_sync": {"reduce": "none"},
        "dp4_at_once": {"reduce": "at once"},
        "dp4_late": {"reduce": "late"},
        "dp4_half": {"reduce": "half"},
        "dp4_large_buckets": {"bucket_mib": 2},
        "dp4_small_buckets": {"bucket_mib": 0.5},
        "dp4_straggler": {"slow": (3, 1.5)},
        "dp2": {"world": 2},
        "dp2_late_links": {"world": 2, "network": Network(mbit=MBIT, delay_us=5000)},
    }.items():
        yield dataclasses.replace(base, name=name, **change)


FOUR = Size("1f1b", 4)
LARGE = Size("1f1b", 3, microbatches=6, rows=1024)  # messages of 512 KiB
LINKS = 400  # Mbit/s, with large messages
UNEVEN_US = (9000, 9000, 9000, 4000, 4000, 4000)
ONE_F_ONE_B = pipeline_orders.one_f_one_b(4, 8)
CHIMERA = pipeline_orders.parse([
    "0F0 0F1 0F2 3F4 3B4 3F5 3B5 0B0 0F3 0B1 3F6 3B6 3F7 3B7 0B2 0B3",
    "1F0 2F4 1F1 2F5 2B4 1B0 2B5 1B1 1F2 2F6 1F3 2F7 2B6 1B2 2B7 1B3",
    "1F4 2F0 1F5 2F1 2B0 1B4 2B1 1B5 1F6 2F2 1F7 2F3 2B2 1B6 2B3 1B7",
    "0F4 0F5 0F6 3F0 3B0 3F1 3B1 0B4 0F7 0B5 3F2 3B2 3F3 3B3 0B6 0B7",
])


def _pipelines():
    job = scheduled.Config
    yield job("p4", FOUR)
    yield job("p4_slow", FOUR, "layers of stage 1 take 1.5 times as long", slow=(1, 1.5))
    yield job("p4_recompute", FOUR, "all layers run again before their backward pass", recompute=2)
    yield job("p4_recompute_half", FOUR, "the first layer of each stage runs again before its backward pass", recompute=1)
    yield job("p4_late_links", FOUR, "packets take 2 ms", network=Network(delay_us=2000))
    yield job("p2dp2", Size("1f1b", 2, replicas=2, microbatches=4, width=256))
    uneven = Size("1f1b", 2, microbatches=6)
    text = ", ".join(str(us // 1000) for us in UNEVEN_US)
    yield job("p2_uneven", uneven, f"layers of {text} ms, three a stage", layers_us=UNEVEN_US, cut=(0, 3))
    yield job("p2_balanced", uneven, f"layers of {text} ms, two and four a stage", layers_us=UNEVEN_US, cut=(0, 2))
    for name, change, links in (
        ("p3_links", f"links of {LINKS} Mbit/s", Network(mbit=LINKS)),
        ("p3_quick_links", f"links of {2 * LINKS} Mbit/s", Network(mbit=2 * LINKS)),
        ("p3_slow_link", f"links of {LINKS} Mbit/s, half between ranks 0 and 1", Network(LINKS, ((0, 1, LINKS // 2),))),
        ("p3_no_links", "the loopback interface", None),
    ):
        yield job(name, LARGE, change, network=links)
    job = pipeline_orders.Config
    yield job("p4_own", "1F1B with receives posted ahead", ONE_F_ONE_B)
    yield job("p4_eager_late", "eager 1F1B, packets take 2 ms", pipeline_orders.eager(4, 8), network=Network(delay_us=2000))
    yield job("p4_chimera", "pipelines in both directions", CHIMERA)
    yield job("p4_local", "stages that learn alone", pipeline_orders.local(4, 8), local=True)
    yield job("p4_slices", "1F1B, micro-batches in 2 slices", pipeline_orders.sliced(ONE_F_ONE_B, 2), part=0.5)
    yield job("p4_offload", "1F1B, 20 ms of copying away and back for each forward pass", ONE_F_ONE_B, copy_ms=20)
    yield job("p4_fill", "1F1B, pieces of other work of 4 ms between passes", ONE_F_ONE_B, fill_ms=4)
    yield job("p2dp2_lost", "two pipelines of two stages with one rank for both of their last stages",
              pipeline_orders.without_a_rank(4))


JOBS = [*_data_parallel(), *_pipelines()]


def _job(name):
    return next(job for job in JOBS if job.name == name)


# Sets of their own; other cases start from sets of pipeline_schedules.py.
TRACES = {
    "what_if_dp4": _job("dp4"),
    "what_if_dp4_straggler": _job("dp4_straggler"),
    "what_if_dp2": _job("dp2"),
    "what_if_p2_uneven": _job("p2_uneven"),
    "what_if_p3_links": _job("p3_links"),
}


def _case(what_if, trace, base, changed, schedule="", note=""):
    return {"what_if": what_if, "schedule": schedule, "trace": trace, "base": base, "changed": changed, "note": note}


# {} are the speeds of encoding and decoding, measured with the times.
CASES = [
    _case("free=all_reduce", "what_if_dp4", "dp4", "dp4_no_sync"),
    _case("bandwidth=x2", "what_if_dp4", "dp4", "dp4_quick_links"),
    _case("bandwidth=0.5x", "what_if_dp4", "dp4", "dp4_slow_links"),
    _case("link=0-1:0.5x", "what_if_dp4", "dp4", "dp4_slow_link"),
    _case("latency=+10ms", "what_if_dp2", "dp2", "dp2_late_links", note="packets take 5 ms, and an all_reduce of two ranks has two rounds"),
    _case("slow=3:1.5", "what_if_dp4", "dp4", "dp4_straggler"),
    _case("straggler=heal", "what_if_dp4_straggler", "dp4_straggler", "dp4"),
    _case("overlap=none", "what_if_dp4", "dp4", "dp4_at_once"),
    _case("overlap=full", "what_if_dp4", "dp4", "dp4_late"),
    _case("buckets=2MiB", "what_if_dp4", "dp4", "dp4_large_buckets"),
    _case("buckets=512KiB", "what_if_dp4", "dp4", "dp4_small_buckets"),
    _case("compress=all_reduce:2x:{}:{}", "what_if_dp4", "dp4", "dp4_half", note="the codec's speed was measured alone"),
    _case("world-size=4", "what_if_dp2", "dp2", "dp4"),
    _case("slow=1:1.5", "pipeline_sched_p4_1f1b", "p4", "p4_slow", "traced"),
    _case("recompute", "pipeline_sched_p4_1f1b", "p4", "p4_recompute", "traced"),
    _case("recompute=0.5", "pipeline_sched_p4_1f1b", "p4", "p4_recompute_half", "traced"),
    _case("latency=+4ms", "pipeline_sched_p4_1f1b", "p4", "p4_late_links", "traced", "a message of Gloo is asked for and then sent"),
    _case("latency=+2ms", "pipeline_sched_p4_1f1b", "p4", "p4_eager_late", "eager-1f1b", "receives are posted ahead"),
    _case("", "pipeline_sched_p4_1f1b", "p4", "p4_chimera", "chimera"),
    _case("local-learning", "pipeline_sched_p4_1f1b", "p4", "p4_local", "traced"),
    _case("slices=2", "pipeline_sched_p4_1f1b", "p4", "p4_slices", "traced"),
    _case("offload=1GB/s:20MB", "pipeline_sched_p4_1f1b", "p4", "p4_offload", "traced", "copies are waits"),
    _case("fill=4ms", "pipeline_sched_p4_1f1b", "p4", "p4_fill", "traced"),
    _case("lost=2", "pipeline_sched_p2dp2_1f1b", "p2dp2", "p2dp2_lost", "traced"),
    _case("repartition", "what_if_p2_uneven", "p2_uneven", "p2_balanced", "traced"),
    _case("bandwidth=x2", "what_if_p3_links", "p3_links", "p3_quick_links", "traced"),
    _case("link=0-1:0.5x", "what_if_p3_links", "p3_links", "p3_slow_link", "traced"),
    _case("free=send", "what_if_p3_links", "p3_links", "p3_no_links", "traced"),
]
