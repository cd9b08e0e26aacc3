"""Reads a dataset with the Parquet readers that users have, pyarrow and DuckDB.

usage: check_readers.py MIXDOWN DATASET

Compares every table's rows and types in both readers, and what the tables say
with what "MIXDOWN analyze DATASET --format json" says. Needs pyarrow, duckdb
and sqlglot of PyPI; exits with 1 and one line for each difference.
"""

import json
import logging
import os
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import sqlglot

I, T, B, L = pa.int64(), pa.string(), pa.bool_(), pa.list_(pa.int64())
# Column types, and whether null is allowed (?), as "mixdown help datasets" has them.
TABLES = {
    "events": "event:I name:T category:T thread:I ts:I dur:I offset:I correlation:I? stream:I? device:I? phase:T? blocks:I?",
    "operations": "operation:I op:T group:I index_in_group:I dtype:T? in_elements:I? out_elements:I? in_bytes:I? out_bytes:I? "
    "in_splits:L? out_splits:L? splits_known:B splits_estimated:B tensors:Y? channels:I? root:I? transfers:X? seq:I? comms_id:U? thread:I? "
    "issued_ns:I returned_ns:I ts:I dur:I stream:T? name:T module:T? offset:I record_function:I? event:I? events:L?",
    "ranks": "source:T rank_from:T host:T? sms:I? gpu:T? versions:T? events_read:I events:I backend:T? world_size:I? cpu_only:B truncated:B",
    "groups": "group:I? name:T? description:T? size:I? ranks:L? stream:T?",
    "steps": "name:T number:I ts:I dur:I",
    "waits": "ts:I thread:I",
    "event_waits": "call:I stream:I? on_stream:I record:I",
    "threads": "thread:I pid:T tid:T",
    "diagnostics": "code:T count:I offset:I? example:T?",
}
ARROW = {
    "I": "int64", "T": "string", "B": "bool", "U": "uint64", "L": "list<element: int64 not null>",
    "Y": "list<element: struct<in_elements: int64 not null, out_elements: int64 not null> not null>",
    "X": "list<element: struct<send: bool not null, peer: int64, elements: int64 not null> not null>",
}
DUCKDB = {
    "I": "BIGINT", "T": "VARCHAR", "B": "BOOLEAN", "U": "UBIGINT", "L": "BIGINT[]",
    "Y": "STRUCT(in_elements BIGINT, out_elements BIGINT)[]",
    "X": "STRUCT(send BOOLEAN, peer BIGINT, elements BIGINT)[]",
}

failures = []


def expect(what, got, want):
    if got != want:
        failures.append(f"{what}: {got!r}, want {want!r}")


def sql(query):
    return duckdb.sql(query).fetchall()


def source(folder, table):
    return f"read_parquet('{folder}/{table}/*/*.parquet', hive_partitioning = true)"


def check_table(folder, table, markers):
    columns = [c.split(":") for c in TABLES[table].split()]
    arrow = ds.dataset(os.path.join(folder, table), partitioning="hive")
    fields = [f for f in arrow.schema if f.name != "rank"]
    expect(f"pyarrow {table} columns", [(f.name, str(f.type), f.nullable) for f in fields],
           [(n, ARROW[t[0]], t.endswith("?")) for n, t in columns])
    described = [(r[0], r[1]) for r in sql(f"DESCRIBE SELECT * FROM {source(folder, table)}") if r[0] != "rank"]
    expect(f"duckdb {table} columns", described, [(n, DUCKDB[t[0]]) for n, t in columns])
    rows = sum(m["files"][table]["rows"] for m in markers)
    read = arrow.to_table()
    read.validate(full=True)
    expect(f"pyarrow {table} rows", read.num_rows, rows)
    expect(f"duckdb {table} rows", sql(f"SELECT count(*) FROM {source(folder, table)}")[0][0], rows)
    # Every value of both readers is the same: compared through a sum that
    # depends on the order of nothing.
    for name, t in columns:
        if t[0] not in "IU":
            continue
        mine = [v for v in read.column(name).to_pylist() if v is not None]
        got = sql(f'SELECT count("{name}"), coalesce(sum("{name}"::HUGEINT), 0), count(DISTINCT "{name}") FROM {source(folder, table)}')[0]
        expect(f"duckdb {table}.{name}", tuple(map(int, got)), (len(mine), sum(mine), len(set(mine))))
    return read


def check_views(folder, tables):
    """The definitions for query engines: DuckDB runs its own, a parser that knows
    all four dialects reads the others."""
    views = os.path.join(folder, "_views")
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it does not look into CALL
    with open(os.path.join(views, "duckdb.sql")) as f:
        duckdb.execute(f.read())
    for table in TABLES:
        expect(f"view {table}", sql(f'SELECT count(*), count(DISTINCT rank) FROM "{table}"')[0],
               (tables[table].num_rows, len(set(tables[table].column("rank").to_pylist()))))
    expect("type of rank", sql("SELECT typeof(rank) FROM events LIMIT 1"), [("BIGINT",)])
    for dialect in ("spark", "trino", "athena"):
        with open(os.path.join(views, dialect + ".sql")) as f:
            statements = [s for s in sqlglot.parse(f.read(), dialect=dialect) if s]
        made = [s for s in statements if isinstance(s, sqlglot.exp.Create)]
        expect(f"{dialect}: tables", [s.find(sqlglot.exp.Table).name for s in made], list(TABLES))
        if dialect == "spark":
            continue
        for s in made:
            table = s.find(sqlglot.exp.Table).name
            columns = [c.name for c in s.find(sqlglot.exp.Schema).expressions]
            want = [c.split(":")[0] for c in TABLES[table].split() if ":U" not in c]
            expect(f"{dialect}: {table}", columns, want + (["rank"] if dialect == "trino" else []))


def main(mixdown, folder):
    with open(os.path.join(folder, "_mixdown.json")) as f:
        about = json.load(f)
    expect("complete", about["complete"], True)
    markers = []
    for name in sorted(os.listdir(os.path.join(folder, "_ranks"))):
        with open(os.path.join(folder, "_ranks", name)) as f:
            markers.append(json.load(f))
    tables = {t: check_table(folder, t, markers) for t in TABLES}
    out = subprocess.run([mixdown, "analyze", folder, "--format", "json", "--quiet"], check=True, stdout=subprocess.PIPE)
    run = json.loads(out.stdout)

    expect("ranks", sorted(tables["ranks"].column("rank").to_pylist()), run["run"]["ranks_present"])
    expect("ranks of the metadata", about["ranks"], run["run"]["ranks_present"])
    expect("world size", about["world_size"], run["run"]["world_size"])
    expect("events by rank", dict(sql(f"SELECT rank, events_read FROM {source(folder, 'ranks')}")),
           {r["rank"]: r["events"] for r in run["ranks"]})
    expect("sources", dict(sql(f"SELECT rank, source FROM {source(folder, 'ranks')}")), {r["rank"]: r["source"] for r in run["ranks"]})
    expect("rows of events", dict(sql(f"SELECT rank, count(*) FROM {source(folder, 'events')} GROUP BY rank")),
           dict(sql(f"SELECT rank, events FROM {source(folder, 'ranks')} WHERE events > 0")))

    # Operations by kind and size, and the time they took.
    key = ("op", "dtype", "in_bytes", "out_bytes")
    mine, theirs = {}, {}
    for op, dtype, i, o, n in sql(f"SELECT op, dtype, in_bytes, out_bytes, count(*) FROM {source(folder, 'operations')} GROUP BY ALL"):
        mine[(op, dtype, i, o)] = n
    for c in run["communication"]:
        k = tuple(c[x] for x in key)
        theirs[k] = theirs.get(k, 0) + c["count"]
    expect("operations by size", {k: n for k, n in mine.items() if k[2] is not None}, {k: n for k, n in theirs.items() if k[2] is not None})
    expect("operations", sum(mine.values()), sum(theirs.values()))
    # Every operation is on events that are there.
    expect("operations without their event", sql(
        f"SELECT count(*) FROM {source(folder, 'operations')} o ANTI JOIN {source(folder, 'events')} e USING (rank, event) WHERE o.event IS NOT NULL")[0][0], 0)
    steps = dict(sql(f"SELECT name, max(dur) FROM {source(folder, 'steps')} GROUP BY name"))
    expect("steps", steps, {s["name"]: s["dur_ns"] for s in run["run"]["steps"]})

    check_views(folder, tables)

    for f in failures:
        print(f, file=sys.stderr)
    if failures:
        return 1
    rows = ", ".join(f"{t} {tables[t].num_rows}" for t in TABLES)
    print(f"{folder}: pyarrow {pa.__version__} and duckdb {duckdb.__version__} agree with mixdown: {rows}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
