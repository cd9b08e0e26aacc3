package help_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"mixdown/cmd/mixdown/help"
	"mixdown/ingest/comm"
	"mixdown/replay/mix"
)

// TestEveryDiagnosticIsExplained finds the codes in the source and looks them
// up in the page.
func TestEveryDiagnosticIsExplained(t *testing.T) {
	page, err := help.Topic("diagnostics")
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`(?:Addf|leaveOut|warn)\("([a-z0-9-]+)"|Code[A-Za-z0-9]+ += "([A-Za-z0-9-]+)"|Code: "([a-z-]+)"|code :?= "([a-z-]+)"`)
	found := 0
	err = filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range pattern.FindAllStringSubmatch(string(data), -1) {
			code := m[1] + m[2] + m[3] + m[4]
			found++
			if !strings.Contains(page, code) && !(strings.HasPrefix(code, "execution-trace-") && strings.Contains(page, "execution-trace-*")) {
				t.Errorf("%s makes the diagnostic %q, which help diagnostics does not explain", path, code)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 30 {
		t.Errorf("only %d codes found in the source", found)
	}
}

// TestMixPageNamesWhatParses: every operation is listed, every rule shown works.
func TestMixPageNamesWhatParses(t *testing.T) {
	page, err := help.Topic("mix")
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range comm.Ops() {
		if !strings.Contains(page, string(op)) {
			t.Errorf("operation %s is not on the page", op)
		}
	}
	for _, condition := range regexp.MustCompile(`@\S+`).FindAllString(page, -1) {
		if strings.Contains(condition, "CONDITION") {
			continue
		}
		rule := "all_reduce" + strings.SplitN(condition, "=nccl", 2)[0] + "=gloo"
		if _, err := mix.Parse(rule); err != nil {
			t.Errorf("the page shows %s: %v", condition, err)
		}
	}
}

// TestDeadlocksPageNamesAllChecks: every check and every field of capabilities is
// explained, and the example is read as it stands.
func TestDeadlocksPageNamesAllChecks(t *testing.T) {
	page, err := help.Topic("deadlocks")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range mix.Kinds() {
		if !strings.Contains(page, k.Code+" "+k.Name) {
			t.Errorf("check %s %s is not on the page", k.Code, k.Name)
		}
	}
	fields := reflect.TypeFor[mix.Capability]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		if name != "name" && !regexp.MustCompile(`(?m)^  (\w+, )*`+name+`\b`).MatchString(page) {
			t.Errorf("the field %q of capabilities is not on the page", name)
		}
	}
	example := page[strings.Index(page, `{"schema_version"`):]
	if _, err := mix.ParseCapabilities(strings.NewReader(example[:strings.Index(example, "]}")+2])); err != nil {
		t.Errorf("the example: %v", err)
	}
}

// TestEveryCheckIsListed: E1 to E9 and W1 to W7 exist, and both pages name all
// checks.
func TestEveryCheckIsListed(t *testing.T) {
	codes := map[string]bool{}
	for _, name := range []string{"deadlocks", "diagnostics"} {
		page, err := help.Topic(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range mix.Kinds() {
			codes[k.Code] = true
			if !strings.Contains(page, "  "+k.Code+" "+k.Name+" ") {
				t.Errorf("help %s does not list %s %s", name, k.Code, k.Name)
			}
		}
	}
	for kind, last := range map[string]int{"E": 9, "W": 7} {
		for n := 1; n <= last; n++ {
			if code := fmt.Sprint(kind, n); !codes[code] {
				t.Errorf("there is no check %s", code)
			}
		}
	}
}
