package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/root"
	"mixdown/cmd/mixdown/version"
)

// writePages writes the manual: a page of section 1 for each command, a page of
// section 7 for each topic of help.
func writePages(dir string, date time.Time) error {
	pages, err := manual(date)
	if err != nil {
		return err
	}
	for name, text := range pages {
		path := filepath.Join(dir, "man"+name[len(name)-1:], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// manual makes all pages, by file name: mixdown-gate-init.1, mixdown-mix.7.
func manual(date time.Time) (map[string][]byte, error) {
	top := root.NewCmd(&cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	header := doc.GenManHeader{Date: &date, Source: "mixdown " + version.Number, Manual: "mixdown"}
	pages := map[string][]byte{}
	var topics []string
	for _, c := range top.Commands() {
		if c.IsAdditionalHelpTopicCommand() {
			page, err := topicPage(c, header)
			if err != nil {
				return nil, err
			}
			pages["mixdown-"+c.Name()+".7"] = page
			topics = append(topics, "mixdown-"+c.Name()+"(7)")
		}
	}
	top.Long += "\n\nTopics of mixdown help have pages of their own: " + strings.Join(topics, ", ") + "."
	return pages, commandPages(top, header, pages)
}

func commandPages(c *cobra.Command, header doc.GenManHeader, pages map[string][]byte) error {
	c.DisableAutoGenTag = true
	c.InitDefaultHelpFlag()
	toMarkdown(c)
	var b bytes.Buffer
	header.Section = "1"
	if err := doc.GenMan(c, &header, &b); err != nil {
		return fmt.Errorf("the page of %s: %w", c.CommandPath(), err)
	}
	pages[strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"] = b.Bytes()
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := commandPages(sub, header, pages); err != nil {
			return err
		}
	}
	return nil
}

// topicPage makes the page of a topic, whose text stands as it is.
func topicPage(topic *cobra.Command, header doc.GenManHeader) ([]byte, error) {
	name := "mixdown-" + topic.Name()
	c := &cobra.Command{Use: name, Short: escaped(topic.Short), Long: "```\n" + topic.Long + "\n```", DisableAutoGenTag: true}
	c.InitDefaultHelpFlag()
	c.Flags().Lookup("help").Hidden = true
	var b bytes.Buffer
	header.Section = "7"
	if err := doc.GenMan(c, &header, &b); err != nil {
		return nil, fmt.Errorf("the page of the topic %s: %w", topic.Name(), err)
	}
	// It is not a command: the synopsis says how to read it without a manual.
	return bytes.Replace(b.Bytes(), []byte(`\fB`+name+`\fP`), []byte(`\fBmixdown help `+topic.Name()+`\fP`), 1), nil
}

// toMarkdown turns the plain text of a command's help into the Markdown that
// cobra/doc takes it for. Seen flags are not turned again: a command's persistent
// ones come back with every command below it.
func toMarkdown(c *cobra.Command) {
	c.Short = escaped(c.Short)
	c.Long = paragraphs(c.Long)
	turn := func(f *pflag.Flag) {
		// pflag's quotes around the name of a value.
		f.Usage = escaped(strings.ReplaceAll(f.Usage, "`", ""))
		f.DefValue = escaped(f.DefValue)
	}
	c.LocalNonPersistentFlags().VisitAll(turn)
	c.PersistentFlags().VisitAll(turn)
}

// paragraphs keeps indented lines, and what follows them up to the next empty
// line, as they are; other text may be filled.
func paragraphs(text string) string {
	var b strings.Builder
	fenced := false
	fence := func(on bool) {
		if fenced != on {
			b.WriteString("```\n")
		}
		if fenced && !on {
			b.WriteString("\n")
		}
		fenced = on
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "  "):
			if !fenced {
				b.WriteString("\n")
			}
			fence(true)
			b.WriteString(line + "\n")
		case line == "" && fenced && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "  "):
			b.WriteString("\n")
		case line == "":
			fence(false)
			b.WriteString("\n")
		default:
			fence(false)
			b.WriteString(escaped(line) + "\n")
		}
	}
	fence(false)
	return strings.TrimRight(b.String(), "\n")
}

// escaped keeps Markdown from seeing more in a text than its letters.
func escaped(text string) string {
	return markdown.Replace(text)
}

var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`,
	"#", `\#`, "<", `\<`, ">", `\>`, "~", `\~`, "|", `\|`)
