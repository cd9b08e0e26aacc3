"""Makes the fixtures of this folder with the PyPI package perfetto (0.59.1,
protobuf 7.36.2): pip install perfetto && python3 generate.py

pytorch.pftrace  as torch/csrc/profiler/cupti/monitor_pftrace.cpp writes it
kineto.pftrace   as libkineto/src/PerfettoTraceBuilder.cpp writes it
stages.pftrace   as the newer monitor_pftrace.cpp writes kernels
sdk.pftrace      as a tracing service writes it: interned names, clocks, loss
"""
import zlib

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent
from perfetto.trace_builder.proto_builder import TraceProtoBuilder

BEGIN, END, INSTANT = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END, TrackEvent.TYPE_INSTANT
CLEARED, NEEDS = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED, TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
UNIX = 1796030320880424867


def process(b, uuid, pid, name, seq=0):
    p = b.add_packet()
    if seq:
        p.trusted_packet_sequence_id = seq
    p.track_descriptor.uuid = uuid
    p.track_descriptor.process.pid = pid
    p.track_descriptor.process.process_name = name
    return p.track_descriptor


def thread(b, uuid, parent, pid, tid, name, seq=0):
    p = b.add_packet()
    if seq:
        p.trusted_packet_sequence_id = seq
    p.track_descriptor.uuid = uuid
    p.track_descriptor.parent_uuid = parent
    p.track_descriptor.thread.pid = pid
    p.track_descriptor.thread.tid = tid
    p.track_descriptor.thread.thread_name = name
    return p.track_descriptor


def annotate(owner, name, v):
    a = owner.add()
    if name is not None:
        a.name = name
    if isinstance(v, bool):
        a.bool_value = v
    elif isinstance(v, int):
        a.int_value = v
    elif isinstance(v, float):
        a.double_value = v
    elif isinstance(v, str):
        a.string_value = v
    elif isinstance(v, dict):
        for k, x in v.items():
            annotate(a.dict_entries, k, x)
    else:
        for x in v:
            annotate(a.array_values, None, x)
    return a


def pytorch():
    b = TraceProtoBuilder()
    process(b, 1, 0, "GPU 0")
    thread(b, 2, 1, 0, 7, "stream 7")
    process(b, 3, 4242, "python")
    thread(b, 4, 3, 4242, 4243, "thread 4243 (python)")
    p = b.add_packet()
    p.trusted_packet_sequence_id = 1
    p.sequence_flags = CLEARED
    for i, name in enumerate(["ncclDevKernel_AllReduce_Sum_f32_RING_LL", "gemm", "Memset", "cudaLaunchKernel"]):
        n = p.interned_data.event_names.add()
        n.iid, n.name = i + 1, name

    def group(rows):
        for start, end, track, name, flow, args in rows:
            p = b.add_packet()
            p.timestamp = UNIX + start
            p.trusted_packet_sequence_id = 1
            p.sequence_flags = NEEDS
            p.track_event.type = BEGIN
            p.track_event.track_uuid = track
            p.track_event.name_iid = name
            if flow:
                p.track_event.flow_ids.append(flow)
            for k, v in args.items():
                annotate(p.track_event.debug_annotations, k, v)
        for start, end, track, name, flow, args in rows:
            p = b.add_packet()
            p.timestamp = UNIX + end
            p.trusted_packet_sequence_id = 1
            p.track_event.type = END
            p.track_event.track_uuid = track

    group([(1000, 3000, 2, 2, 11, {"stream": 7, "correlation": 11, "grid": [1, 2, 3]}),
           (3000, 9000, 2, 1, 12, {"stream": 7, "correlation": 12, "Collective name": "allreduce", "In msg nelems": 2049000,
                                   "Process Group Ranks": "[0, 1]"})])
    group([(500, 500, 2, 3, 0, {"bytes": 16})])
    group([(100, 400, 4, 4, 11, {"correlation": 11}), (450, 2000, 4, 4, 12, {"correlation": 12})])
    return b.serialize()


def kineto():
    b = TraceProtoBuilder()
    seq = 0xfedcba98

    def packet():
        p = b.add_packet()
        p.trusted_packet_sequence_id = seq
        return p

    root = process(b, 1, 0, "Kineto Trace", seq)
    root.name = "Kineto Trace"
    p = packet()
    p.track_event.type = INSTANT
    p.track_event.name = "trace_metadata"
    p.track_event.track_uuid = 1
    annotate(p.track_event.debug_annotations, "distributedInfo", '{"backend": "nccl", "rank": 3}')
    d = process(b, 2, 5, "python3", seq)
    d.name = "python3 [CPU]"
    t = thread(b, 3, 2, 5, 77, "thread 77 (python3)", seq)
    t.name = "thread 77 (python3)"
    rows = [("aten::mm", 1000, 5000, '\n      "External id": 513, "Input Dims": [[4, 3], []], "Input type": ["float", ""]'),
            ("cudaLaunchKernel", 2000, 1000, '"cbid": 211, "correlation": 99'),
            ("broken", 4000, 0, '"bandwidth": inf')]
    for i, (name, start, dur, metadata) in enumerate(rows):
        sub = b.add_packet().track_descriptor
        sub.uuid, sub.parent_uuid, sub.name = 10 + i, 3, "thread 77 (python3)"
        p = packet()
        p.timestamp = UNIX + start
        p.track_event.type = BEGIN
        p.track_event.name = name
        p.track_event.track_uuid = 10 + i
        annotate(p.track_event.debug_annotations, "metadata", metadata)
        if i == 1:
            annotate(p.track_event.debug_annotations, "correlation_id", 99)
            p.track_event.flow_ids.append(99)
        p = packet()
        p.timestamp = UNIX + start + dur
        p.track_event.type = END
        p.track_event.track_uuid = 10 + i
    return b.serialize()


def sdk():
    b = TraceProtoBuilder()
    p = b.add_packet()
    p.trusted_packet_sequence_id = 1
    p.clock_snapshot.primary_trace_clock = 6
    for clock, ts in ((6, 1_000_000), (1, UNIX), (3, 900_000)):
        c = p.clock_snapshot.clocks.add()
        c.clock_id, c.timestamp = clock, ts
    process(b, 100, 9, "trainer")

    # A sequence with an incremental clock in microseconds, defaults and interned data.
    p = b.add_packet()
    p.trusted_packet_sequence_id = 2
    p.sequence_flags = CLEARED
    p.trace_packet_defaults.timestamp_clock_id = 64
    p.trace_packet_defaults.track_event_defaults.track_uuid = 101
    p.clock_snapshot.primary_trace_clock = 6
    c = p.clock_snapshot.clocks.add()
    c.clock_id, c.timestamp = 6, 2_000_000
    c = p.clock_snapshot.clocks.add()
    c.clock_id, c.timestamp, c.is_incremental, c.unit_multiplier_ns = 64, 2_000, True, 1000
    thread(b, 101, 100, 9, 10, "main", 2)
    s = b.add_packet().track_descriptor
    s.uuid, s.parent_uuid, s.name = 102, 100, "pipeline stage 0"

    def event(seq, ts, kind, **k):
        p = b.add_packet() if k.get("into") is None else k["into"].packet.add()
        p.trusted_packet_sequence_id = seq
        p.timestamp = ts
        if "flags" in k:
            p.sequence_flags = k["flags"]
        p.track_event.type = kind
        for iid, name in k.get("names", {}).items():
            n = p.interned_data.event_names.add()
            n.iid, n.name = iid, name
        for iid, name in k.get("cats", {}).items():
            n = p.interned_data.event_categories.add()
            n.iid, n.name = iid, name
        if "iid" in k:
            p.track_event.name_iid = k["iid"]
        if "name" in k:
            p.track_event.name = k["name"]
        if "clock" in k:
            p.timestamp_clock_id = k["clock"]
        if "track" in k:
            p.track_event.track_uuid = k["track"]
        p.track_event.category_iids.extend(k.get("cat", []))
        return p

    p = event(2, 5, BEGIN, flags=NEEDS, names={1: "step"}, cats={1: "user_annotation", 2: "train"}, iid=1, cat=[1])
    n = p.interned_data.debug_annotation_names.add()
    n.iid, n.name = 1, "number"
    n = p.interned_data.debug_annotation_string_values.add()
    n.iid, n.str = 1, b"interned \"text\""
    a = p.track_event.debug_annotations.add()
    a.name_iid, a.uint_value = 1, 2**64 - 1
    a = p.track_event.debug_annotations.add()
    a.name, a.string_value_iid = "text", 1
    p = event(2, 10, BEGIN, flags=NEEDS, names={2: "forward"}, iid=2, cat=[1, 2])
    annotate(p.track_event.debug_annotations, "all", {"list": [1, -2, "x"], "f": 1.5, "b": True, "inf": float("inf"), "empty": {"x": []}})
    a = p.track_event.debug_annotations.add()
    a.name, a.pointer_value = "ptr", 0xdeadbeef
    a = p.track_event.debug_annotations.add()
    a.name, a.legacy_json_value = "json", '{"a": [1, null]}'
    a = p.track_event.debug_annotations.add()
    a.name = "nested"
    a.nested_value.nested_type = 1
    a.nested_value.dict_keys.extend(["i", "s"])
    a.nested_value.dict_values.add().int_value = 3
    a.nested_value.dict_values.add().string_value = "t"
    event(2, 0, INSTANT, flags=NEEDS, name="mark")
    p = event(2, 20, END, flags=NEEDS)
    annotate(p.track_event.debug_annotations, "ptr", "replaced")
    annotate(p.track_event.debug_annotations, "more", 7)
    event(2, 1, END, flags=NEEDS)
    # Another clock, an own track, in absolute time.
    event(3, 2_900_000, BEGIN, name="F0", track=102, clock=3)
    event(3, 2_950_000, END, track=102, clock=3)
    # Packets inside of a compressed one.
    inner = Trace()
    event(3, 4_000_000, BEGIN, name="zipped", track=102, into=inner)
    event(3, 4_000_100, END, track=102, into=inner)
    b.add_packet().compressed_packets = zlib.compress(inner.SerializeToString())
    # The state is cleared: 1 is another name now; then packets are lost.
    event(2, 3_000_000, INSTANT, flags=CLEARED, names={1: "after"}, iid=1, clock=6, track=101)
    p = event(2, 3_000_001, INSTANT, flags=NEEDS, iid=5, clock=6, track=101)
    p.previous_packet_dropped = 1
    # Neither begun nor ended, and a track that nobody describes.
    event(3, 5_000_000, BEGIN, name="open", track=102)
    event(3, 1_000, END, track=999)
    event(3, 5_000_001, INSTANT, name="nowhere", track=999)
    event(3, 5_000_002, TrackEvent.TYPE_COUNTER, track=999)
    p = b.add_packet()
    p.gpu_counter_event.counter_descriptor_iid = 5
    return b.serialize()


def stages():
    """As the newer monitor_pftrace.cpp writes kernels; the tables of kernels and
    arguments are in an extension, added here by number."""
    b = TraceProtoBuilder()
    p = b.add_packet()
    p.trusted_packet_sequence_id = 1
    p.sequence_flags = CLEARED
    n = p.interned_data.event_names.add()
    n.iid, n.name = 1, "Memcpy DtoH"
    for iid, name in ((1, "stream 7"), (2, "Kernel"), (3, "Memcpy")):
        s = p.interned_data.gpu_specifications.add()
        s.iid, s.name = iid, name

    def extension(number, payload):
        tag = number << 3 | 2
        return bytes([tag & 0x7f | 0x80, tag >> 7, len(payload)]) + payload

    kernel = b"\x08\x01\x1a\x04gemm"  # iid 1, demangled_name
    arg = b"\x08\x01\x12" + bytes([20]) + b"registers per thread"
    p.interned_data.MergeFromString(extension(1000, kernel) + extension(1001, arg))
    for ts, dur, stage, name, launch in ((100, 50, 2, 0, True), (160, 5, 3, 1, False)):
        p = b.add_packet()
        p.timestamp = UNIX + ts
        p.trusted_packet_sequence_id = 1
        p.sequence_flags = NEEDS
        g = p.gpu_render_stage_event
        g.event_id, g.duration, g.gpu_id, g.hw_queue_iid, g.stage_iid, g.context = ts, dur, 2, 1, stage, 1
        if name:
            g.name_iid = name
        if launch:
            g.kernel_iid = 1
            g.launch.grid_size.x, g.launch.grid_size.y, g.launch.grid_size.z = 4, 2, 1
            g.launch.workgroup_size.x, g.launch.workgroup_size.y, g.launch.workgroup_size.z = 128, 1, 1
            a = g.launch.args.add()
            a.name_iid, a.uint_value = 1, 32
        e = g.extra_data.add()
        e.name, e.value = "correlation", str(ts)
    return b.serialize()


for name, data in (("pytorch", pytorch()), ("kineto", kineto()), ("sdk", sdk()), ("stages", stages())):
    with open(name + ".pftrace", "wb") as f:
        f.write(data)
