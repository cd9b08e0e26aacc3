package megatron

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"mixdown/ingest/chrome"
	"mixdown/ingest/diagnostic"
)

// Options bounds what Read takes. The zero value means the defaults.
type Options struct {
	MaxSpans int            // spans and marks together; default 16 Mi
	Limits   chrome.Options // of the JSON
}

const defaultMaxSpans = 16 << 20

// Read reads the trace in r, decompressed. Damage is counted in the pipeline's
// diagnostics. An error means that r is no Chrome trace, has no pipeline, or
// could not be read.
func Read(r io.Reader, name string, opts Options) (*Pipeline, error) {
	if opts.MaxSpans <= 0 {
		opts.MaxSpans = defaultMaxSpans
	}
	p := &Pipeline{Source: name}
	reader := chrome.NewReader(r, opts.Limits)
	if err := p.read(reader, opts.MaxSpans); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.Truncated = reader.Truncated()
	return p, nil
}

func (p *Pipeline) read(reader *chrome.Reader, most int) error {
	names := map[string]string{}
	pairs := chrome.NewPairer(reader)
	for {
		ev, err := pairs.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if len(p.Spans)+len(p.Marks) >= most {
			p.Diagnostics.Addf(CodeLimit, diagnostic.NoRank, ev.Offset, "more than %d spans: the rest is not read", most)
			break
		}
		// Names are few; the events are many.
		evName, ok := names[string(ev.Name)]
		if !ok {
			evName = string(ev.Name)
			names[evName] = evName
		}
		p.add(ev, evName)
	}
	for _, found := range [][]chrome.Diagnostic{reader.Diagnostics(), pairs.Diagnostics()} {
		for _, d := range found {
			p.Diagnostics.Add(diagnostic.Diagnostic{Code: d.Code, Rank: diagnostic.NoRank, Count: d.Count, Offset: d.Offset, Example: d.Example})
		}
	}
	slices.SortStableFunc(p.Spans, func(a, b Span) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Offset, b.Offset)) })
	slices.SortStableFunc(p.Marks, func(a, b Mark) int { return cmp.Or(cmp.Compare(a.TS, b.TS), cmp.Compare(a.Offset, b.Offset)) })
	for i := range p.Spans {
		if s := &p.Spans[i]; s.Kind != Other && s.Stage.Known {
			return nil
		}
	}
	return ErrNoPipeline
}

func (p *Pipeline) add(ev *chrome.Event, name string) {
	switch ev.Phase {
	case 'X':
		p.addSpan(ev, name)
	case 'i', 'I':
		p.addMark(ev, name)
	case 'B':
		p.note(CodeOpenSpan, ev, name)
	}
}

func (p *Pipeline) addSpan(ev *chrome.Event, name string) {
	if !ev.HasTS || !ev.HasDur || ev.TS+ev.Dur < ev.TS {
		p.note(CodeUntimed, ev, name)
		return
	}
	s := Span{Kind: kindOf(name), Name: name, Run: ev.TID.String(), Start: ev.TS, Dur: ev.Dur, Offset: ev.Offset}
	ev.Args.Each(func(key []byte, v chrome.Value) bool {
		switch string(key) {
		case "pp_rank":
			s.Stage = p.index(v, ev, key)
		case "model_chunk":
			s.Chunk = p.index(v, ev, key)
		case "microbatch":
			s.Microbatch = p.index(v, ev, key)
		case "iteration":
			s.Iteration = p.index(v, ev, key)
		}
		return true
	})
	s.Stage = p.stage(s.Stage, ev, name)
	if s.Kind != Other && !s.Microbatch.Known {
		p.note(CodeNoMicrobatch, ev, name)
	}
	p.Spans = append(p.Spans, s)
}

func (p *Pipeline) addMark(ev *chrome.Event, name string) {
	if !ev.HasTS {
		p.note(CodeUntimed, ev, name)
		return
	}
	m := Mark{Name: name, Run: ev.TID.String(), TS: ev.TS, Offset: ev.Offset}
	if v, ok := ev.Args.Get("iteration"); ok {
		m.Iteration = p.index(v, ev, []byte("iteration"))
	}
	if v, ok := ev.Args.Get("pp_rank"); ok {
		m.Stage = p.index(v, ev, []byte("pp_rank"))
	}
	m.Stage = p.stage(m.Stage, ev, name)
	p.Marks = append(p.Marks, m)
}

// stage decides between what the arguments and the process id say.
func (p *Pipeline) stage(said Index, ev *chrome.Event, name string) Index {
	pid, isInt := ev.PID.Int()
	isInt = isInt && pid >= 0 && pid < maxIndex
	switch {
	case !said.Known && isInt:
		return Index{int(pid), true}
	case !said.Known:
		p.note(CodeStageUnknown, ev, name)
	case isInt && int(pid) != said.N:
		p.Diagnostics.Addf(CodeStageConflict, diagnostic.NoRank, ev.Offset, "pp_rank %d in process %d", said.N, pid)
	}
	return said
}

// maxIndex bounds what is believed to be a stage, chunk, micro-batch or
// iteration.
const maxIndex = 1 << 31

func (p *Pipeline) index(v chrome.Value, ev *chrome.Event, key []byte) Index {
	n, ok := v.Int()
	if v.Kind() == chrome.Null {
		return Index{}
	}
	if !ok || n < 0 || n >= maxIndex {
		p.Diagnostics.Addf(CodeBadIndex, diagnostic.NoRank, ev.Offset, "%s is %.40q", key, v.Raw())
		return Index{}
	}
	return Index{int(n), true}
}

func (p *Pipeline) note(code string, ev *chrome.Event, name string) {
	p.Diagnostics.Addf(code, diagnostic.NoRank, ev.Offset, "%+.80q", name)
}

// kindOf reads the names of MegatronApp's tracer, of Megatron-LM's timers and
// of its schedule functions. Names of communication, such as "forward-recv",
// are others.
func kindOf(name string) Kind {
	switch strings.ReplaceAll(strings.ToLower(name), "-", "_") {
	case "forward", "forward_compute", "forward_step":
		return Forward
	case "backward", "backward_compute", "backward_step":
		return Backward
	}
	return Other
}
