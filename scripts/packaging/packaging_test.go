package main

import (
	"debug/buildinfo"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/root"
)

// letters are those of a text: a page may break lines elsewhere.
func letters(text string) string {
	return strings.Join(strings.Fields(text), "")
}

// plain takes the requests and escapes of a manual page away. What is escaped how
// is in groff_man(7) and groff_char(7).
func plain(page string) string {
	var b strings.Builder
	for _, line := range strings.Split(page, "\n") {
		if !strings.HasPrefix(line, ".") {
			b.WriteString(line + "\n")
		}
	}
	text := regexp.MustCompile(`\\f[A-Z]|\\&`).ReplaceAllString(b.String(), "")
	return strings.NewReplacer(`\-`, "-", `\e`, `\`, `\\`, `\`, `\(aq`, "'", `\(cq`, "'", `\(ga`, "`", `\(ha`, "^", `\(ti`, "~").Replace(text)
}

// TestManualSaysWhatHelpSays: every command and topic has a page, with every letter
// of its texts and flags.
func TestManualSaysWhatHelpSays(t *testing.T) {
	pages, err := manual(time.Unix(1_700_000_000, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	top := root.NewCmd(&cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	seen := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		section := ".1"
		if c.IsAdditionalHelpTopicCommand() {
			section = ".7"
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + section
		page, ok := pages[name]
		if !ok {
			t.Errorf("there is no page %s", name)
			return
		}
		seen++
		got := letters(plain(string(page)))
		texts := []string{c.Short, c.Long, c.Example}
		if section == ".1" {
			texts = append(texts, c.UseLine())
			c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					texts = append(texts, "--"+f.Name, strings.ReplaceAll(f.Usage, "`", ""))
				}
			})
		}
		for _, text := range texts {
			for _, line := range strings.Split(text, "\n") {
				if !strings.Contains(got, letters(line)) {
					t.Errorf("%s lacks %q", name, line)
				}
			}
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
				visit(sub)
			}
		}
	}
	visit(top)
	if seen < 30 {
		t.Errorf("only %d pages", seen)
	}
	again, err := manual(time.Unix(1_700_000_000, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range pages {
		if string(again[name]) != string(page) {
			t.Errorf("%s is made differently the second time", name)
		}
	}
}

func TestParagraphs(t *testing.T) {
	got := paragraphs("Fill *this*\nand that:\n\n  keep   this\n\n  and this\nthen fill\n\nagain")
	want := "Fill \\*this\\*\nand that:\n\n\n```\n  keep   this\n\n  and this\n```\n\nthen fill\n\nagain"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLicencesOfAllModules: the linker's own list says which modules are in a
// program; each is named.
func TestLicencesOfAllModules(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	info, err := buildinfo.ReadFile(filepath.Join("bin", "mixdown"))
	if err != nil {
		t.Skipf("bin/mixdown is not built: %v", err)
	}
	list, err := linked("./cmd/mixdown")
	if err != nil {
		t.Fatal(err)
	}
	text := list.text()
	for _, m := range info.Deps {
		if !strings.Contains(text, "\n"+m.Path+"@"+m.Version+"\n") {
			t.Errorf("no licence of %s %s", m.Path, m.Version)
		}
	}
	if len(info.Deps) < 10 || !strings.Contains(text, "Go's standard library") {
		t.Errorf("%d modules are linked, and Go's own licence is missing or not", len(info.Deps))
	}
}

// TestAddAbove: a folder inside a module may have a licence of its own.
func TestAddAbove(t *testing.T) {
	top := t.TempDir()
	deep := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"LICENSE.txt": "one", "NOTICE": "two", "licenses.go": "package x", "a/COPYING": "three", "a/b/licence_test.md": "four", "README": "five"} {
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	list := &licences{}
	n, err := list.addAbove("example.org/m@v1", top, deep)
	if err != nil || n != 4 {
		t.Errorf("%d files, %v; want 4", n, err)
	}
	for text, name := range map[string]string{"one": "example.org/m@v1", "three": "example.org/m@v1/a", "four": "example.org/m@v1/a/b"} {
		if len(list.under[text]) != 1 || list.under[text][0] != name {
			t.Errorf("%q is under %v, want %s", text, list.under[text], name)
		}
	}
}
