package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// The output formats that every verb has.
const (
	Text = "text"
	JSON = "json"
)

// FormatFlag declares --format with completion.
func FormatFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVar(format, "format", Text, "output `FORMAT`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{Text, JSON}, cobra.ShellCompDirectiveNoFileComp))
}

// CheckFormat refuses formats that do not exist.
func CheckFormat(format string) error {
	if format != Text && format != JSON {
		return fmt.Errorf("%w: --format %q: known are text, json", ErrUsage, format)
	}
	return nil
}
