package gate_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"mixdown/analyze/gate"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/help"
	"mixdown/cmd/mixdown/root"
)

// words splits a command line as a shell does, without expanding anything.
func words(line string) []string {
	var list []string
	for _, w := range regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`).FindAllString(line, -1) {
		list = append(list, strings.NewReplacer(`'`, "", `"`, "").Replace(w))
	}
	return list
}

// commandLines are those of mixdown in a text: from the word mixdown to the end of
// the line, a pipe or a redirection.
func commandLines(text string) []string {
	var list []string
	for _, m := range regexp.MustCompile(`(?m)(?:^|[\s-])(mixdown (?:gate|replay|diff|analyze|ingest|plan)\b(?:'[^'\n]*'|"[^"\n]*"|[^\n|>'"])*)`).FindAllStringSubmatch(text, -1) {
		list = append(list, strings.TrimSpace(m[1]))
	}
	return list
}

// parse reads a command line as mixdown would, without running it, and its rules.
func parse(t *testing.T, line string) {
	t.Helper()
	streams, _, _ := buffers()
	tree := root.NewCmd(streams)
	cmd, rest, err := tree.Find(words(line)[1:])
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil && cmd.Args != nil {
		err = cmd.Args(cmd, cmd.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: %v", line, err)
		return
	}
	if !cmd.Runnable() || cmd == tree {
		t.Errorf("%s: %q does nothing", line, cmd.CommandPath())
	}
	if f := cmd.Flags().Lookup("rule"); f != nil {
		rules, err := cmd.Flags().GetStringArray("rule")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			if _, err := gate.ParseRule(r); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// scripts finds the texts that run commands in a YAML file: run and script.
func scripts(n *yaml.Node) []string {
	var list []string
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && (n.Content[i-1].Value == "run" || n.Content[i-1].Value == "script") {
			for _, s := range append([]*yaml.Node{c}, c.Content...) {
				list = append(list, s.Value)
			}
		}
		list = append(list, scripts(c)...)
	}
	return list
}

// TestExamplesOfCI: the files are YAML, the policy is one, and the command lines of
// mixdown in them are.
func TestExamplesOfCI(t *testing.T) {
	const dir = "../../../examples/ci"
	for file, atLeast := range map[string]int{"github-workflow.yml": 2, "gitlab-ci.yml": 3, "action.yml": 1} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(data, &doc); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		found := 0
		for _, s := range scripts(&doc) {
			for _, line := range commandLines(s) {
				found++
				parse(t, line)
			}
		}
		if found < atLeast {
			t.Errorf("%s: %d command lines of mixdown", file, found)
		}
	}
	f, err := os.Open(filepath.Join(dir, "gate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := gate.ReadPolicy(f, "gate.yaml"); err != nil {
		t.Error(err)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^    (mixdown .*)$`).FindAllStringSubmatch(string(readme), -1) {
		parse(t, line[1])
	}
}

// TestHelpPage: its rules are rules, its policy a policy, its metrics all metrics
// and its items all items.
func TestHelpPage(t *testing.T) {
	page, err := help.Topic("gates")
	if err != nil {
		t.Fatal(err)
	}
	section := func(from, to string) string {
		_, after, ok := strings.Cut(page, "\n"+from+"\n")
		before, _, also := strings.Cut(after, "\n"+to+"\n")
		if !ok || !also {
			t.Fatalf("no section from %s to %s", from, to)
		}
		return before
	}
	rules := 0
	for _, line := range strings.Split(section("RULES", "METRICS, of one step"), "\n") {
		if line = strings.TrimSpace(line); line == "" || !strings.ContainsAny(line[:1], "abcdefghijklmnopqrstuvwxyz") || strings.Contains(line, "are ns us") {
			continue
		}
		rules++
		if _, err := gate.ParseRule(line); err != nil {
			t.Errorf("%v", err)
		}
	}
	if rules < 10 {
		t.Errorf("%d rules", rules)
	}
	text, _, _ := strings.Cut(section("POLICY", "STATISTICS"), "\n\"mixdown")
	if _, err := gate.ReadPolicy(strings.NewReader(text), "help"); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	metrics := section("METRICS, of one step", "POLICY")
	for _, m := range gate.Metrics() {
		if !regexp.MustCompile(`(?m)^  .*\b` + string(m) + `\b`).MatchString(metrics) {
			t.Errorf("metric %s is not on the page", m)
		}
	}
	items := section("COMPARABLE", "OUTPUT")
	for _, i := range gate.Items() {
		if !strings.Contains(items, "\n  "+string(i)+" ") {
			t.Errorf("item %s is not on the page", i)
		}
	}
	if strings.Contains(page, "FIGURES") {
		t.Error("the page has no figures")
	}
}

// TestExamplesRun runs the examples of the commands and of the page, in their
// order, on runs of those names.
func TestExamplesRun(t *testing.T) {
	replay := regexp.MustCompile(`(?s)-- replay.json --\n(.*?)-- `).FindStringSubmatch(read(t, "../testdata/script/gate_replay.txtar"))
	page, err := help.Topic("gates")
	if err != nil {
		t.Fatal(err)
	}
	streams, _, _ := buffers()
	tree := root.NewCmd(streams)
	var lists [][]string
	for _, path := range [][]string{{"gate"}, {"gate", "init"}, {"gate", "baseline", "save"}, {"gate", "baseline", "show"}} {
		cmd, _, err := tree.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, strings.Split(cmd.Example, "\n"))
	}
	lists = append(lists, strings.Split(page[:strings.Index(page, "\nA run is")], "\n"))
	dir := t.TempDir()
	for i, name := range []string{"main", "branch", "monday", "tuesday", "wednesday"} {
		link(t, traces(t, usual(uint64(i+1))), filepath.Join(dir, name))
	}
	t.Chdir(dir)
	if err := os.WriteFile("replay.json", []byte(replay[1]), 0o644); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, list := range lists {
		for _, line := range list {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "mixdown gate ") || strings.Contains(line, " holds a run") {
				continue
			}
			ran++
			if strings.Contains(line, " gate init ") {
				_ = os.Remove("gate.yaml") // it replaces none
			}
			streams, out, messages := buffers()
			want := cli.Done
			if strings.Contains(line, "variant=*") {
				want = cli.Regression // the replay of that name has a variant that gains nothing
			}
			if code := root.Execute(context.Background(), streams, words(line)[1:]); code != want {
				t.Errorf("%s: exit code %d, want %d\n%s%s", line, code, want, out, messages)
			}
		}
	}
	if ran < 10 {
		t.Errorf("%d examples", ran)
	}
}

// link gives a folder a name.
func link(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Rename(dir, name); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
