package kineto

import (
	"strings"

	"mixdown/ingest/trace"
)

// modulePrefix begins the names of the events of modules, which traces have
// when they were made with stacks: "nn.Module: Linear_3".
const modulePrefix = "nn.Module: "

// setModules gives every operation the innermost module that was running on its
// thread when it was issued. Backward passes run outside of modules.
func setModules(rank *trace.Rank) {
	ev := &rank.Events
	markers := map[trace.ThreadID][]marker{}
	for i := range ev.Len() {
		if ev.Category[i] == trace.PythonFunction && strings.HasPrefix(rank.Name(i), modulePrefix) {
			markers[ev.Thread[i]] = append(markers[ev.Thread[i]], marker{ev.TS[i], ev.End(i), i + 1})
		}
	}
	if len(markers) == 0 {
		return
	}
	modules := newInnermost(markers)
	for i := range rank.Operations {
		op := &rank.Operations[i]
		if op.Thread < 0 {
			continue
		}
		if e := modules.at(trace.ThreadID(op.Thread), op.Issued); e > 0 {
			op.Module = strings.TrimPrefix(rank.Name(e-1), modulePrefix)
		}
	}
}
