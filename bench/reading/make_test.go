package main

import (
	"fmt"
	"testing"
)

func TestRepeated(t *testing.T) {
	const text = `{"a": [1], "traceEvents": [
  {"ph": "X", "ts": 5, "name": "x", "args": {"ts": "7"}},
  {"ph": "X", "ts": 6.25, "name": "y"}
], "b": [2]}`
	got, err := repeated([]byte(text), 2)
	want := fmt.Sprintf(`{"a": [1], "traceEvents": [
  {"ph": "X", "ts": 5, "name": "x", "args": {"ts": "7"}},
  {"ph": "X", "ts": 6.25, "name": "y"},
{"ph": "X", "ts": %d, "name": "x", "args": {"ts": "7"}},
  {"ph": "X", "ts": %d.25, "name": "y"}
], "b": [2]}`, 5+shift, 6+shift)
	if err != nil || string(got) != want {
		t.Errorf("%v, got %s\nwant %s", err, got, want)
	}
}
