package imports

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// inspectorRecord is a line of a dump of NCCL's inspector.
type inspectorRecord struct {
	Header *struct {
		ID    string `json:"id"`
		Rank  int    `json:"rank"`
		Ranks int    `json:"n_ranks"`
		Nodes int    `json:"nnodes"`
	} `json:"header"`
	Coll *struct {
		Coll  string  `json:"coll"`
		SN    int64   `json:"coll_sn"`
		Bytes int64   `json:"coll_msg_size_bytes"`
		US    float64 `json:"coll_exec_time_us"`
	} `json:"coll_perf"`
}

// readInspector reads dumps of NCCL's inspector: one operation of one rank a line,
// from the application itself. The time of an operation is that of its slowest
// rank, waiting for late ranks included; of equal operations the median is taken.
func readInspector(x *reading) error {
	type call struct {
		id string
		sn int64
	}
	type place struct {
		op           comm.Op
		bytes        int64
		ranks, nodes int
	}
	type seen struct {
		place
		ns    int64
		ranks map[int]bool
	}
	calls := map[call]*seen{}
	err := x.lines(func(line string, offset int64) error {
		if line == "" {
			return nil
		}
		var r inspectorRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Header == nil || r.Coll == nil || r.Header.Ranks < 1 {
			x.note(CodeBadRow, offset, "%.80s", line)
			return nil
		}
		op, ok := comm.ParseOp(r.Coll.Coll)
		if !ok {
			x.note(CodeUnknownOp, offset, "%.80s", r.Coll.Coll)
			return nil
		}
		t := ns(r.Coll.US)
		if t <= 0 || r.Coll.Bytes < 0 || r.Coll.Bytes > math.MaxInt64/int64(r.Header.Ranks)/2 {
			x.note(CodeNoTime, offset, "%.80s", line)
			return nil
		}
		k := call{r.Header.ID, r.Coll.SN}
		p := place{op, r.Coll.Bytes, r.Header.Ranks, r.Header.Nodes}
		s := calls[k]
		if s == nil {
			s = &seen{place: p, ranks: map[int]bool{}}
			calls[k] = s
		}
		if s.place != p {
			x.note(CodeBadRow, offset, "operation %d of communicator %s differs between ranks", k.sn, k.id)
			return nil
		}
		s.ns, s.ranks[r.Header.Rank] = max(s.ns, t), true
		return nil
	})
	if err != nil {
		return err
	}
	times := map[place][]int64{}
	for _, s := range calls {
		if len(s.ranks) < s.place.ranks {
			x.note(CodePartial, noOffset, "%s of %d bytes: %d of %d ranks", s.op, s.bytes, len(s.ranks), s.place.ranks)
		}
		times[s.place] = append(times[s.place], s.ns)
	}
	places := slices.SortedFunc(maps.Keys(times), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.ranks, b.ranks), cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.bytes, b.bytes))
	})
	for _, p := range places {
		list := times[p]
		slices.Sort(list)
		n := len(list)
		m := measured{
			op: p.op, size: p.bytes, ranks: p.ranks, ns: list[(n-1)/2], min: list[0], n: int64(n), statistic: tune.Median,
			p95: list[min(n-1, int(math.Ceil(0.95*float64(n)))-1)], offset: noOffset,
		}
		before := x.Nodes
		if p.nodes > 0 {
			x.Nodes = p.nodes
		}
		if err := x.add(m, inspectorSize); err != nil {
			return err
		}
		x.Nodes = before
	}
	return nil
}
