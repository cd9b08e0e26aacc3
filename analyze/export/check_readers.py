#!/usr/bin/env python3
"""Reads what "mixdown analyze" exported with other people's readers.

Usage: check_readers.py DIR, where DIR holds tables (Parquet), tables.arrow,
run.pftrace, run.json and report.json, as examples/run.sh makes them. Needs the
packages in examples/requirements.txt. It is no part of "go test": it says
whether pyarrow, DuckDB, Polars, pandas and Perfetto's own protobufs agree with
the description in tables.json and with the JSON report.
"""

import hashlib
import json
import os
import pathlib
import sys
from collections import Counter

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

TYPES = {"int64": pa.int64(), "bool": pa.bool_(), "float64": pa.float64(),
         "string": pa.dictionary(pa.int32(), pa.string())}


def check(condition, message):
    if not condition:
        raise SystemExit("FAILED: " + message)


def check_schema(where, schema, table, skip_rank):
    """The file has the columns that tables.json describes, with their types."""
    want = [c for c in table["columns"] if not (skip_rank and c["name"] == "rank")]
    check(schema.names == [c["name"] for c in want], f"{where}: columns {schema.names}")
    for c in want:
        field = schema.field(c["name"])
        check(field.type == TYPES[c["type"]], f"{where}: {c['name']} is {field.type}, described as {c['type']}")
        check(field.nullable == c["nullable"], f"{where}: {c['name']} nullable is {field.nullable}")


def check_pyarrow(root, suffix, fmt):
    about = json.loads((root / "tables.json").read_text())
    rows = {}
    for t in about["tables"]:
        files = sorted(root.glob(t["path"]))
        check(len(files) == t["files"], f"{root / t['path']}: {len(files)} files")
        for f in files:
            if fmt == "parquet":
                schema = pq.read_schema(f)
            else:
                with pa.memory_map(str(f)) as m:
                    schema = ipc.open_file(m).schema
            meta = schema.metadata
            check_schema(f, schema, t, bool(t["partitioned_by"]))
            check(meta[b"mixdown.table"].decode() == t["name"], f"{f}: metadata {meta}")
            check(meta[b"mixdown.schema_version"] == b"1", f"{f}: no schema version")
            check_source(f, meta)
        data = ds.dataset(root / t["name"], format=fmt, partitioning="hive" if t["partitioned_by"] else None).to_table()
        data.validate(full=True)
        check(data.num_rows == t["rows"], f"{t['name']}: {data.num_rows} rows, described {t['rows']}")
        rows[t["name"]] = data
    print(f"pyarrow {pa.__version__}: {fmt}: {len(rows)} tables, {sum(t.num_rows for t in rows.values())} rows, types and nulls as described")
    return rows


def check_source(name, meta):
    """A table of one rank names the trace it comes from, and its checksum."""
    source, checksum = meta.get(b"mixdown.source"), meta.get(b"mixdown.source_sha256")
    if source and pathlib.Path(source.decode()).is_file():
        check(checksum and checksum.decode() == hashlib.sha256(pathlib.Path(source.decode()).read_bytes()).hexdigest(), f"{name}: checksum of {source}")


def check_report(tables, report):
    """The tables add up to the JSON report."""
    comm = tables["communication"].to_pandas()
    check(len(comm) == sum(c["count"] for c in report["communication"]), "rows of communication")
    for column, field in (("busy_ns", "total_ns"), ("exposed_ns", "exposed_ns")):
        check(int(comm[column].sum()) == sum(c[field] for c in report["communication"]), column)
    by_rank = {r["rank"]: r["time"] for r in report["ranks"]}
    for row in tables["ranks"].to_pylist():
        for k in ("span_ns", "compute_ns", "comm_ns", "exposed_comm_ns", "idle_ns"):
            check(row[k] == by_rank[row["rank"]][k], f"rank {row['rank']}: {k}")
    check(tables["collectives"].num_rows == report["collectives_matched"], "collectives")
    check(tables["diagnostics"].num_rows == len(report["diagnostics"]), "diagnostics")
    check(isinstance(comm["op"].dtype, pandas.CategoricalDtype), f"pandas reads op as {comm['op'].dtype}")
    print(f"pandas {pandas.__version__}: sums equal the JSON report; text is categorical")


def check_duckdb(root, tables):
    con = duckdb.connect()
    about = json.loads((root / "tables.json").read_text())
    for statement in about["duckdb"]:
        con.execute(statement.replace("read_parquet('", f"read_parquet('{root}/"))
    for t in about["tables"]:
        n = con.execute(f"SELECT count(*) FROM {t['name']}").fetchone()[0]
        check(n == t["rows"], f"duckdb: {t['name']} has {n} rows")
    total, unknown = con.execute("SELECT sum(exposed_ns), count(*) FILTER (wait_ns IS NULL) FROM communication").fetchone()
    comm = tables["communication"]
    check((total or 0) == (pa.compute.sum(comm["exposed_ns"]).as_py() or 0), "duckdb: exposed_ns")
    check(unknown == comm["wait_ns"].null_count, "duckdb: nulls")
    joined = con.execute("SELECT count(*) FROM communication JOIN collectives USING (collective_id)").fetchone()[0]
    check(joined == comm.num_rows - comm["collective_id"].null_count, "duckdb: join of collectives")
    print(f"duckdb {duckdb.__version__}: views of tables.json work, {joined} operations join their collectives")


def check_polars(root, arrow_root, tables):
    for scan, where in ((polars.scan_parquet, root / "communication/**/*.parquet"), (polars.scan_ipc, arrow_root / "communication/**/*.arrow")):
        frame = scan(str(where), hive_partitioning=True).collect()
        check(frame.height == tables["communication"].num_rows, f"polars: {where}")
        check(frame["rank"].n_unique() == len(tables["communication"]["rank"].unique()), f"polars: ranks of {where}")
        check(frame["ts"].dtype == polars.Int64 and frame["op"].dtype == polars.Categorical, f"polars: {frame.schema}")
        check(frame["wait_ns"].null_count() == tables["communication"]["wait_ns"].null_count, "polars: nulls")
    print(f"polars {polars.__version__}: parquet and ipc read, partitions and categories too")


def check_perfetto(path, tables):
    """Parses with Perfetto's own descriptors, and pairs begins with ends."""
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    names, notes, texts = {}, {}, {}
    tracks, parents, counters, depth, last = {}, {}, set(), Counter(), {}
    flows, operations, ranks = Counter(), 0, 0
    for p in trace.packet:
        for m in (p, p.track_event, p.track_descriptor, p.track_descriptor.counter, p.interned_data):
            check(len(UnknownFieldSet(m)) == 0, f"unknown fields in {m}")
        if p.sequence_flags & 1:
            names, notes, texts = {}, {}, {}
        for entry in p.interned_data.event_names:
            names[entry.iid] = entry.name
        for entry in p.interned_data.debug_annotation_names:
            notes[entry.iid] = entry.name
        for entry in p.interned_data.debug_annotation_string_values:
            texts[entry.iid] = entry.str
        if p.HasField("track_descriptor"):
            d = p.track_descriptor
            tracks[d.uuid], parents[d.uuid] = d.name, d.parent_uuid
            ranks += d.HasField("process")
            if d.HasField("counter"):
                counters.add(d.uuid)
        if not p.HasField("track_event"):
            continue
        e = p.track_event
        check(e.track_uuid in tracks, f"event on track {e.track_uuid}, which nothing describes")
        check(p.timestamp >= last.get(e.track_uuid, 0), "times of a track go back")
        last[e.track_uuid] = p.timestamp
        if e.type == TrackEvent.TYPE_COUNTER:
            check(e.track_uuid in counters and 0 <= e.double_counter_value <= 100, "counter")
        elif e.type == TrackEvent.TYPE_SLICE_END:
            depth[e.track_uuid] -= 1
            check(depth[e.track_uuid] >= 0, "an end without begin")
        else:
            check(e.name_iid in names, "name not interned")
            depth[e.track_uuid] += e.type == TrackEvent.TYPE_SLICE_BEGIN
            args = {notes[a.name_iid]: texts[a.string_value_iid].decode() if a.string_value_iid else a.int_value for a in e.debug_annotations}
            operations += "op" in args
            flows.update(e.flow_ids)
    check(not any(depth.values()), "slices left open")
    check(ranks == tables["ranks"].num_rows, f"{ranks} processes")
    check(operations >= tables["communication"].num_rows, f"{operations} slices of communication")
    sizes = Counter(tables["communication"]["collective_id"].drop_null().to_pylist())
    for i, n in sizes.items():
        check(n < 2 or flows[i + 1] == n, f"collective {i} has {n} members, its flow {flows[i + 1]}")
    print(f"perfetto protos: {len(trace.packet)} packets, {len(tracks)} tracks, {operations} communication slices, {len(flows)} flows")


def check_trace_processor(path, tables):
    """Perfetto's own importer. Its binary is no part of the package and is not
    fetched here: TRACE_PROCESSOR names one."""
    binary = os.environ.get("TRACE_PROCESSOR")
    if not binary:
        print("perfetto trace_processor: skipped: TRACE_PROCESSOR names no binary of trace_processor_shell")
        return
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
    with TraceProcessor(trace=str(path), config=TraceProcessorConfig(bin_path=binary)) as tp:
        n = next(iter(tp.query("select count(*) as n from slice where category = 'communication'"))).n
        check(n >= tables["communication"].num_rows, f"trace_processor: {n} slices")
        bad = [r.name for r in tp.query("select name from stats where severity in ('error', 'data_loss') and value > 0")]
        check(not bad, f"trace_processor: {bad}")
    print("perfetto trace_processor: imports without errors")


def check_chrome(path, tables):
    events = json.loads(path.read_text(), parse_constant=lambda c: check(False, f"{c} is no JSON"))["traceEvents"]
    n = sum(e["ph"] == "X" and e["cat"] == "communication" for e in events)
    check(n >= tables["communication"].num_rows, f"chrome: {n} slices of communication")
    print(f"json: {len(events)} events")


def main():
    root = pathlib.Path(sys.argv[1])
    tables = check_pyarrow(root / "tables", ".parquet", "parquet")
    arrow = check_pyarrow(root / "tables.arrow", ".arrow", "arrow")
    for name in tables:
        check(tables[name].to_pylist() == arrow[name].select(tables[name].column_names).to_pylist(), f"{name}: Parquet and Arrow differ")
    check_report(tables, json.loads((root / "report.json").read_text()))
    check_duckdb(root / "tables", tables)
    check_polars(root / "tables", root / "tables.arrow", tables)
    check_perfetto(root / "run.pftrace", tables)
    check_trace_processor(root / "run.pftrace", tables)
    check_chrome(root / "run.json", tables)


if __name__ == "__main__":
    main()
