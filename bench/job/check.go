package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// check sees to it that the analysis answered.
func check(out []byte, ranks int) error {
	var a struct {
		Ranks        []json.RawMessage `json:"ranks"`
		CriticalPath json.RawMessage   `json:"critical_path"`
		Breakdown    []json.RawMessage `json:"breakdown"`
		Clocks       struct {
			Applied bool `json:"applied"`
		} `json:"clocks"`
		Stragglers struct {
			Ranks []struct {
				Rank int `json:"rank"`
			} `json:"ranks"`
		} `json:"stragglers"`
		Unmatched int `json:"collectives_unmatched"`
	}
	if err := json.Unmarshal(out, &a); err != nil {
		return fmt.Errorf("analysis: %w", err)
	}
	switch s := a.Stragglers.Ranks; {
	case len(a.Ranks) != ranks:
		return fmt.Errorf("the analysis has %d ranks of %d", len(a.Ranks), ranks)
	case !a.Clocks.Applied:
		return fmt.Errorf("the clocks are not aligned")
	case a.Unmatched > 0:
		return fmt.Errorf("%d collectives are not matched", a.Unmatched)
	case len(s) == 0 || s[0].Rank != late%ranks:
		return fmt.Errorf("the late rank %d is not the first of the stragglers %v", late%ranks, s)
	case string(a.CriticalPath) == "null" || len(a.Breakdown) == 0:
		return fmt.Errorf("the critical path or the breakdown is missing")
	}
	return nil
}

// countEvents returns the number of events of a trace and its size.
func countEvents(name string) (events int, size int64, err error) {
	b, err := os.ReadFile(name)
	return bytes.Count(b, []byte(`"ph":`)), int64(len(b)), err
}
