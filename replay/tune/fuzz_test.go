package tune_test

import (
	"bytes"
	"testing"

	"mixdown/replay/tune"
)

// FuzzDecode: a table that is read is written as the same bytes that are read as the
// same table, whatever the input was.
func FuzzDecode(f *testing.F) {
	x := &tune.Table{}
	x.AddEnvironment(tune.Environment{Hardware: "2 cores", Variables: map[string]string{"A": "b"}})
	if err := x.Add(row("gloo", 8, 100), row("openmpi:ring", 64, 90)); err != nil {
		f.Fatal(err)
	}
	data, err := x.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{8, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := tune.Decode(data)
		if err != nil {
			return
		}
		tune.Losses(tune.Compare(a, nil)) // must not panic
		first, err := a.Encode()
		if err != nil {
			return // text that is not UTF-8
		}
		b, err := tune.Decode(first)
		if err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
		if second, err := b.Encode(); err != nil || !bytes.Equal(first, second) {
			t.Errorf("written twice, two tables: %v", err)
		}
	})
}
