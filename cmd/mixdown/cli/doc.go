// Package cli holds what all commands share: where they write, how their
// errors become exit codes, and how they show progress.
package cli
