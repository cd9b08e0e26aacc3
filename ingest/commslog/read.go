package commslog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
)

// Read reads the output of the logger in r, decompressed: text or JSON. What
// looks like its output and cannot be read is counted in the log's diagnostics.
// An error means that nothing of it was found, or that r could not be read.
func Read(r io.Reader, name string, opts Options) (*Log, error) {
	opts = opts.withDefaults()
	log := &Log{Source: name}
	b := bufio.NewReaderSize(r, 64<<10)
	first, err := firstByte(b)
	switch {
	case err != nil:
	case first == '{':
		err = log.readJSON(b, opts)
	default:
		err = log.readText(b, opts)
	}
	if err == nil && len(log.Tables) == 0 && len(log.Calls) == 0 {
		err = ErrNotLog
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return log, nil
}

// firstByte returns the first byte that is no white space, without taking it.
// It gives up where text begins with very many blanks.
func firstByte(b *bufio.Reader) (byte, error) {
	if mark, err := b.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		if _, err := b.Discard(3); err != nil {
			return 0, err
		}
	}
	for n := 1; ; n++ {
		head, err := b.Peek(n)
		if len(head) < n {
			if n == 1 || len(bytes.TrimSpace(head)) == 0 {
				if err == nil || errors.Is(err, io.EOF) {
					return 0, ErrEmpty
				}
				if !errors.Is(err, bufio.ErrBufferFull) {
					return 0, err
				}
			}
			return ' ', nil
		}
		if c := head[n-1]; strings.IndexByte(" \t\r\n", c) < 0 {
			return c, nil
		}
	}
}

// readText reads a text line by line.
func (log *Log) readText(b *bufio.Reader, opts Options) error {
	t := tables{log: log}
	rows := 0
	at := int64(0)
	for {
		line, n, err := readLine(b, opts.MaxLineBytes)
		if errors.Is(err, errLineTooLong) {
			log.note(CodeLineTooLong, at, string(line))
			at += n
			continue
		}
		text := strings.TrimRight(string(line), "\r\n")
		if rows >= opts.MaxRows {
			log.Diagnostics.Addf(CodeLimit, diagnostic.NoRank, at, "more than %d rows: the rest is not read", opts.MaxRows)
			return nil
		}
		if strings.Contains(text, verboseStart) {
			rows += log.verbose(text, at)
		} else if t.line(text, at) {
			rows++
		}
		at += n
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), rows == 0:
			return fmt.Errorf("stopped at byte %d: %w", at, err)
		default:
			log.Diagnostics.Addf(CodeTruncated, diagnostic.NoRank, at, "%v", err)
			return nil
		}
	}
}

var errLineTooLong = errors.New("line too long")

// readLine returns the next line and its length in the stream. Of a line of
// more than limit bytes it returns the beginning and errLineTooLong.
func readLine(b *bufio.Reader, limit int) (line []byte, n int64, err error) {
	for {
		piece, err := b.ReadSlice('\n')
		n += int64(len(piece))
		if room := limit - len(line); room > 0 {
			line = append(line, piece[:min(room, len(piece))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if n > int64(limit) && err == nil {
			return line, n, errLineTooLong
		}
		return line, n, err
	}
}

// note counts a fault with the text it is about.
func (log *Log) note(code string, at int64, text string) {
	log.Diagnostics.Addf(code, diagnostic.NoRank, at, "%s", shown(text))
}

func (log *Log) unknownName(op comm.Op, name string, at int64) {
	if op == comm.Unknown {
		log.note(CodeUnknownOperation, at, name)
	}
}

// shown makes text safe to print anywhere, and short.
func shown(text string) string {
	const most = 160
	if len(text) > most {
		text = text[:most]
	}
	q := strconv.QuoteToASCII(text)
	return q[1 : len(q)-1]
}
