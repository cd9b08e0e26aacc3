package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

const usage = `usage: packaging man DIR                    manual pages, into DIR/man1 and DIR/man7
       packaging licences FILE [NAME=TEXT...]  licences of the modules linked into
                                              mixdown, and these files' texts
SOURCE_DATE_EPOCH, in seconds, is the date of the pages.`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "man":
		seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		return writePages(args[1], time.Unix(seconds, 0).UTC())
	case len(args) >= 2 && args[0] == "licences":
		list, err := linked("./cmd/mixdown")
		if err != nil {
			return err
		}
		for _, arg := range args[2:] {
			if err := list.addFile(arg); err != nil {
				return err
			}
		}
		return os.WriteFile(args[1], []byte(list.text()), 0o644)
	}
	return errors.New(usage)
}
