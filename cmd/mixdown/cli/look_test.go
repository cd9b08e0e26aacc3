package cli

import (
	"testing"

	"mixdown/analyze/report"
)

// TestLook: the terminal's width unless COLUMNS says otherwise, and ASCII where the
// locale or the terminal has no more.
func TestLook(t *testing.T) {
	for _, c := range []struct {
		env      map[string]string
		terminal int
		want     report.Look
	}{
		{nil, 0, report.Look{}},
		{nil, 132, report.Look{Columns: 132}},
		{map[string]string{"COLUMNS": "80"}, 132, report.Look{Columns: 80}},
		{map[string]string{"COLUMNS": "80"}, 0, report.Look{Columns: 80}},
		{map[string]string{"COLUMNS": "-5"}, 132, report.Look{Columns: 132}},
		{map[string]string{"COLUMNS": "wide"}, 0, report.Look{}},
		{map[string]string{"LANG": "C"}, 0, report.Look{ASCII: true}},
		{map[string]string{"LANG": "C.UTF-8"}, 0, report.Look{}},
		{map[string]string{"LC_ALL": "de_DE.utf8", "LANG": "C"}, 0, report.Look{}},
		{map[string]string{"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, 0, report.Look{ASCII: true}},
		{map[string]string{"LC_CTYPE": "en_US.ISO-8859-1", "LANG": "en_US.UTF-8"}, 0, report.Look{ASCII: true}},
		{map[string]string{"TERM": "dumb", "LANG": "en_US.UTF-8"}, 90, report.Look{Columns: 90, ASCII: true}},
	} {
		if got := lookOf(func(name string) string { return c.env[name] }, c.terminal); got != c.want {
			t.Errorf("%v on %d columns: %+v, want %+v", c.env, c.terminal, got, c.want)
		}
	}
}
