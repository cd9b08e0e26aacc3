package main

import (
	"testing"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

func TestCompare(t *testing.T) {
	made := func(rows ...tune.Row) *tune.Table {
		x := &tune.Table{}
		for _, r := range rows {
			r.Op, r.DType, r.Device, r.Ranks, r.Nodes, r.Streams, r.Statistic = comm.AllReduce, comm.Float32, tune.Host, 2, 1, 1, tune.Median
			r.Out = r.In
			if err := x.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		return x
	}
	a, b, c := tune.Contender{Backend: "a"}, tune.Contender{Backend: "b"}, tune.Contender{Backend: "c"}
	x := made(tune.Row{Contender: a, In: 8, Time: 10}, tune.Row{Contender: b, In: 8, Time: 20}, tune.Row{Contender: a, In: 64, Time: 30},
		tune.Row{Contender: b, In: 64, Time: 10}, tune.Row{Contender: a, In: 512, Time: 9}, tune.Row{Contender: b, In: 512, Time: 10})
	y := made(tune.Row{Contender: a, In: 8, Time: 10}, tune.Row{Contender: b, In: 8, Time: 15}, tune.Row{Contender: a, In: 64, Time: 10},
		tune.Row{Contender: b, In: 64, Time: 40}, tune.Row{Contender: a, In: 512, Time: 9}, tune.Row{Contender: b, In: 512, Time: 10}, tune.Row{Contender: c, In: 512, Time: 1})
	list := compare(x, y)
	if len(list) != 2 || list[0].a.Bytes != 8 || list[0].a.Winner != list[0].b.Winner || list[1].a.Winner != b || list[1].b.Winner != a {
		t.Errorf("%+v", list)
	}
}
