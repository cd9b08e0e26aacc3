package schedule

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestResultJSON holds the contract with scripts to the letter.
func TestResultJSON(t *testing.T) {
	for spec, want := range map[string]string{
		"breadth-first:ranks=2,microbatches=2,loops=2": `{"schema_version":1,"schedule":"breadth-first","ranks":2,"microbatches":2,"loops":2,"makespan":15,` +
			`"bubble":"1/5","bubble_longest_span":"1/5","peak_chunks":[4,4],"messages":12,` +
			`"order":[["0F0","0F1","2F0","2F1","2B0","2B1","0B0","0B1"],["1F0","1F1","3F0","3F1","3B0","3B1","1B0","1B1"]]}`,
		"gpipe:ranks=1,microbatches=1,hop=3,forward=0.5": `{"schema_version":1,"schedule":"gpipe","ranks":1,"microbatches":1,"loops":1,"makespan":"5/2",` +
			`"bubble":0,"bubble_longest_span":0,"peak_chunks":[1],"messages":0,"order":[["0F0","0B0"]]}`,
		"dualpipev:ranks=1,microbatches=2": `{"schema_version":1,"schedule":"dualpipev","ranks":1,"microbatches":2,"loops":2,"makespan":12,` +
			`"bubble":0,"bubble_longest_span":0,"peak_chunks":[3],"messages":0,` +
			`"order":[["0F0","1F0","0F1","1B0","(1F1;0B0)OVERLAP_F_B","1B1","0I1","0W1"]]}`,
	} {
		s, err := Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		result := NewResult(s.Name, mustEvaluate(t, specOrder(t, spec), s.Costs))
		data, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		if string(data) != want {
			t.Errorf("%s:\n got %s\nwant %s", spec, data, want)
		}
		var read Result
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		if again, _ := json.Marshal(read); string(again) != want || !reflect.DeepEqual(read.Order, result.Order) {
			t.Errorf("%s: read back as %s", spec, again)
		}
	}
}

// TestDesignExample is the example in the design document.
func TestDesignExample(t *testing.T) {
	s, err := Parse("breadth-first:ranks=4,microbatches=8,loops=4,forward=1,backward=2")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(NewResult(s.Name, mustEvaluate(t, specOrder(t, s.String()), s.Costs)))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"schema_version":1,"schedule":"breadth-first","ranks":4,"microbatches":8,"loops":4,"makespan":105,"bubble":"3/35",` +
		`"bubble_longest_span":"3/35","peak_chunks":[32,32,32,32],"messages":240,"order":[["0F0","0F1",`; !strings.HasPrefix(string(data), want) {
		t.Errorf("got %.300s", data)
	}
}
