package perfetto

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/iotest"
)

// checkReader checks what holds for every input.
func checkReader(t *testing.T, input []byte, opts Options) {
	t.Helper()
	whole, err := readAll(bytes.NewReader(input), opts)
	pieces, err2 := readAll(iotest.OneByteReader(bytes.NewReader(input)), opts)
	if (err == nil) != (err2 == nil) || whole != pieces {
		t.Fatalf("in one piece %v\n%sin pieces %v\n%s", err, whole, err2, pieces)
	}
	r := NewReader(bytes.NewReader(input), opts)
	for n := 0; ; n++ {
		ev, err := r.Next()
		if err != nil {
			break
		}
		if n > opts.MaxEvents+2*opts.MaxTracks+2 {
			t.Fatal("more events than the limits allow")
		}
		if ev.Offset < 0 || ev.End < ev.Offset || ev.End > int64(len(input)) || ev.HasDur && ev.Dur < 0 {
			t.Fatalf("event %+v", ev)
		}
		if raw := ev.Args.Raw(); len(raw) > 0 && !json.Valid(raw) {
			t.Fatalf("args %q", raw)
		}
	}
	for _, d := range r.Diagnostics() {
		if d.Count < 1 || d.Offset < 0 || d.Offset > int64(len(input)) {
			t.Fatalf("diagnostic %+v", d)
		}
	}
}
