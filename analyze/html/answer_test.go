package html_test

import (
	"strings"
	"testing"

	"mixdown/analyze/html"
)

// TestWhatIsSaidFirst: measurements before the traces, those before predictions,
// unless the page is of a prediction.
func TestWhatIsSaidFirst(t *testing.T) {
	const traces = `{"schema_version":1,"run":{"world_size":1},"ranks":[{"rank":0,"time":{"span_ns":100,"compute_ns":80,"idle_ns":20}}]}`
	for name, c := range map[string]struct {
		results []string
		first   bool
		want    string
	}{
		"all":            {[]string{simulateJSON, traces, replayJSON}, false, "2.05 times as fast as the traced plan"},
		"traces":         {[]string{simulateJSON, traces}, false, "80 % is computation and 20 % idle; the traces hold no communication."},
		"the prediction": {[]string{simulateJSON, traces}, true, "is predicted to run the step 1.25 times as fast as the traced order, with 2.00 times its activations"},
		"copies":         {[]string{strings.Replace(traces, `"idle_ns":20}}]`, `"idle_ns":15}}],"communication":[{"group":"0","op":"send","total_ns":1}]`, 1)}, false, "80 % is computation, 0 % communication that no computation hides, 5 % copies, and 15 % idle."},
		"no work":        {[]string{simulateJSON, `{"schema_version":1,"run":{"world_size":1},"ranks":[{"rank":0}]}`}, false, "is predicted to run the step 1.25 times"},
		"a mix":          {[]string{strings.Replace(simulateJSON, `"schedule":"NAME","step_ns":800`, `"mix_step_ns":800,"step_ns":0`, 1)}, false, "The mix “NAME” is predicted to run the step 1.25 times"},
	} {
		p := &html.Page{PredictionFirst: c.first}
		for _, text := range c.results {
			if _, err := p.AddResult([]byte(text)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got := p.Answer().Sentence; !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
		checkSafe(t, write(t, p))
	}
}

// TestCommandsAreQuoted as a shell takes them.
func TestCommandsAreQuoted(t *testing.T) {
	for arg, want := range map[string]string{
		"traces/run-7": "traces/run-7", "": "''", "my traces": "'my traces'", "it's": `'it'\''s'`, "$(rm -rf ~)": "'$(rm -rf ~)'", "a\nb": `'a\u000ab'`, "--html=x": "--html=x",
	} {
		if got := html.Quote(arg); got != want {
			t.Errorf("%q: %s, expected %s", arg, got, want)
		}
	}
}
