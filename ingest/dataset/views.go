package dataset

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/schema"

	"mixdown/ingest/diagnostic"
	"mixdown/ingest/remote"
	"mixdown/ingest/trace"
)

// viewFolder holds the definitions of the tables for query engines.
const viewFolder = "_views"

// Dialect is a query engine's way to define the tables of a dataset.
type Dialect string

// The dialects.
const (
	DuckDB Dialect = "duckdb"
	Spark  Dialect = "spark"
	Trino  Dialect = "trino"
	Athena Dialect = "athena"
)

// Dialects lists them.
func Dialects() []Dialect { return []Dialect{DuckDB, Spark, Trino, Athena} }

// Views returns statements that make the tables of a dataset known to a query
// engine: views in DuckDB and Spark, external tables partitioned by rank in Trino
// and Athena, whose location is an object store. worldSize bounds the ranks that
// Athena looks for.
func Views(d Dialect, at Place, worldSize int) string {
	location := locationOf(at)
	var b strings.Builder
	b.WriteString(map[Dialect]string{
		DuckDB: "-- duckdb run.duckdb < duckdb.sql\n-- Of a bucket: INSTALL httpfs; LOAD httpfs; CREATE SECRET (TYPE s3, PROVIDER credential_chain);\n",
		Spark:  "-- spark-sql -f spark.sql\n-- Outside of EMR and Glue, Spark calls buckets s3a://.\n",
		Trino: "-- USE hive.default; of another schema, put its name for 'default' below, too.\n" +
			"-- comms_id is left out: it is unsigned, 64 bits, which Trino has no type for.\n",
		Athena: "-- One statement at a time; partitions are projected: nothing has to be added when ranks are.\n" +
			"-- comms_id is left out: it is unsigned, 64 bits, which Athena has no type for.\n",
	}[d])
	all := tablesOf(&trace.Rank{Names: trace.NewStrings()}, &[]group{}, &[]diagnostic.Diagnostic{})
	for _, name := range Tables() {
		b.WriteByte('\n')
		path := location + "/" + name
		switch d {
		case DuckDB:
			fmt.Fprintf(&b, "CREATE OR REPLACE VIEW %s AS\n  SELECT * FROM read_parquet(%s, hive_partitioning = true, hive_types = {'rank': BIGINT});\n",
				d.identifier(name), quoted(path+"/*/*.parquet"))
		case Spark:
			fmt.Fprintf(&b, "CREATE OR REPLACE TEMPORARY VIEW %s\n  USING parquet OPTIONS (path %s);\n", d.identifier(name), quoted(path))
		case Trino:
			fmt.Fprintf(&b, "CREATE TABLE IF NOT EXISTS %s (\n%s,\n  %s bigint\n) WITH (format = 'PARQUET', external_location = %s, partitioned_by = ARRAY['rank']);\n",
				d.identifier(name), d.columns(all[name]), d.identifier("rank"), quoted(path+"/"))
			fmt.Fprintf(&b, "CALL system.sync_partition_metadata('default', %s, 'FULL');\n", quoted(name))
		case Athena:
			fmt.Fprintf(&b, "CREATE EXTERNAL TABLE IF NOT EXISTS %s (\n%s\n)\nPARTITIONED BY (%s bigint)\nSTORED AS PARQUET\nLOCATION %s\n", d.identifier(name),
				d.columns(all[name]), d.identifier("rank"), quoted(path+"/"))
			fmt.Fprintf(&b, "TBLPROPERTIES ('projection.enabled' = 'true', 'projection.rank.type' = 'integer', 'projection.rank.range' = '0,%d',\n"+
				"  'storage.location.template' = %s);\n", max(worldSize-1, 0), quoted(path+"/rank=${rank}/"))
		}
	}
	return b.String()
}

// locationOf is the place as programs started elsewhere find it.
func locationOf(at Place) string {
	name := at.String()
	if remote.Is(name) {
		return name
	}
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	return filepath.ToSlash(name)
}

// quoted is text in SQL.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// identifier is a name in SQL; some of ours are words of SQL.
func (d Dialect) identifier(name string) string {
	if d == Spark || d == Athena {
		return "`" + name + "`"
	}
	return `"` + name + `"`
}

// columns lists the columns of a table with their types.
func (d Dialect) columns(t *table) string {
	var lines []string
	for _, c := range t.columns {
		if p, ok := c.node.(*schema.PrimitiveNode); ok && isUnsigned(p) {
			continue
		}
		lines = append(lines, "  "+d.identifier(c.name)+" "+d.typeOf(c.node))
	}
	return strings.Join(lines, ",\n")
}

func isUnsigned(p *schema.PrimitiveNode) bool {
	i, ok := p.LogicalType().(interface{ IsSigned() bool })
	return ok && !i.IsSigned()
}

// typeOf is the type of a column, an element of a list or a field of a record.
func (d Dialect) typeOf(n schema.Node) string {
	if p, ok := n.(*schema.PrimitiveNode); ok {
		switch p.PhysicalType() {
		case parquet.Types.Boolean:
			return "boolean"
		case parquet.Types.ByteArray:
			if d == Athena {
				return "string"
			}
			return "varchar"
		}
		return "bigint"
	}
	g := n.(*schema.GroupNode)
	if _, ok := g.LogicalType().(schema.ListLogicalType); ok {
		element := d.typeOf(g.Field(0).(*schema.GroupNode).Field(0))
		if d == Athena {
			return "array<" + element + ">"
		}
		return "array(" + element + ")"
	}
	var fields []string
	for i := range g.NumFields() {
		f := g.Field(i)
		if d == Athena {
			fields = append(fields, f.Name()+":"+d.typeOf(f))
		} else {
			fields = append(fields, d.identifier(f.Name())+" "+d.typeOf(f))
		}
	}
	if d == Athena {
		return "struct<" + strings.Join(fields, ",") + ">"
	}
	return "row(" + strings.Join(fields, ", ") + ")"
}
