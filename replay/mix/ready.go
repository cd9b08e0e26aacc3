package mix

import (
	"fmt"
	"slices"

	"mixdown/replay/plan/planpb"
)

// checkReady looks for buffers in GPU memory that a library might read too early
// (E6, D15): what fills them must be known to have ended by the host.
func (m *model) checkReady(found *collector) {
	for p, program := range m.w.Programs {
		last := fill(int32(len(program.Streams)))
		for i, t := range program.Tasks {
			n := m.base[p] + int32(i)
			previous := last[t.Stream]
			last[t.Stream] = int32(i)
			if m.commOf[n] < 0 {
				continue
			}
			if c := m.cap(m.commOf[n]); !c.gpu() || c.StreamOrdered {
				continue
			}
			before := t.Deps
			if previous >= 0 {
				before = append(slices.Clone(before), previous)
			}
			for _, d := range before {
				if !m.endsOnGPU(m.base[p]+d, program.Tasks[d]) {
					continue
				}
				found.add("E6", m.backendName(m.commOf[n]), func() Finding {
					f := m.finding([]int32{n}, "", "let the host wait for the kernel (a wait task, an event synchronised) before the library is called")
					f.Message = fmt.Sprintf("%s on rank %d follows task %d, which ends on the GPU, but %s does not look at streams: it may read the buffer before it is filled",
						f.Operations[0].short(), program.Rank, d, m.backendName(m.commOf[n]))
					return f
				})
			}
		}
	}
}

// endsOnGPU says whether only the GPU knows when a task has ended.
func (m *model) endsOnGPU(n int32, t *planpb.Task) bool {
	if t.GetSpan() != nil {
		return t.GetSpan().Kind == planpb.Span_DEVICE
	}
	return m.commOf[n] >= 0 && m.cap(m.commOf[n]).StreamOrdered
}
