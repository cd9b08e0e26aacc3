package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"mixdown/analyze/report"
)

// Streams is where a command reads and writes: data on Out, everything else on Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// ErrTerminal: Err is a terminal, so progress may redraw its line.
	ErrTerminal bool
	// Quiet: no progress.
	Quiet bool
	// Look is that of text on Out: as wide as the terminal, and with the characters
	// that it shows. Text for pipes always looks the same but for those.
	Look report.Look
}

// System returns the streams of the process.
func System() *Streams {
	return &Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Look:        lookOf(os.Getenv, terminalColumns()),
	}
}

// terminalColumns is how wide the terminal on stdout is, 0 when it is none.
func terminalColumns() int {
	if !term.IsTerminal(int(os.Stdout.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// lookOf is the look of text on a terminal of so many columns, 0 for none. COLUMNS
// overrides the width, in pipes too; a locale without UTF-8, or a terminal that knows
// little, gets ASCII. Nothing is ever coloured, so that NO_COLOR asks for nothing.
func lookOf(getenv func(string) string, columns int) report.Look {
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 {
		columns = n
	}
	look := report.Look{Columns: columns, ASCII: getenv("TERM") == "dumb"}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first that is set counts (POSIX)
		if locale := strings.ToUpper(getenv(name)); locale != "" {
			look.ASCII = look.ASCII || !strings.Contains(strings.ReplaceAll(locale, "-", ""), "UTF8")
			break
		}
	}
	return look
}

// Progress shows how far a long task is: a bar on a terminal, else a line now
// and then. Its methods may be called from several goroutines.
type Progress struct {
	streams *Streams
	what    string
	mu      sync.Mutex
	last    time.Time
	started time.Time
	drawn   bool
	now     func() time.Time
}

// How often progress is shown.
const (
	redraw = 100 * time.Millisecond
	lines  = 5 * time.Second
)

// NewProgress begins to show progress of what.
func (s *Streams) NewProgress(what string) *Progress {
	now := time.Now
	return &Progress{streams: s, what: what, now: now, started: now(), last: now()}
}

// barWidth is in characters.
const barWidth = 30

// Set shows that done of total is reached, with a word on what comes next.
func (p *Progress) Set(done, total int, detail string) {
	if p.streams.Quiet {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	interval := lines
	if p.streams.ErrTerminal {
		interval = redraw
	}
	if p.now().Sub(p.last) < interval {
		return
	}
	p.last = p.now()
	if !p.streams.ErrTerminal {
		fmt.Fprintf(p.streams.Err, "%s: %d of %d %s\n", p.what, done, total, detail)
		return
	}
	filled := 0
	if total > 0 {
		filled = min(barWidth, barWidth*done/total)
	}
	bar := make([]byte, barWidth)
	for i := range bar {
		bar[i] = '.'
		if i < filled {
			bar[i] = '#'
		}
	}
	fmt.Fprintf(p.streams.Err, "\r\x1b[K%s [%s] %d/%d %s", p.what, bar, done, total, detail)
	p.drawn = true
}

// Done removes the bar.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		fmt.Fprint(p.streams.Err, "\r\x1b[K")
		p.drawn = false
	}
}
