package planning

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
	"mixdown/replay/mix"
)

// CapabilitiesFlag declares --capabilities, for the verbs that check plans.
func CapabilitiesFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "capabilities", "", "`FILE` in JSON that says what backends can do, over what is known of them; see mixdown help deadlocks")
}

// ReadCapabilities reads the file of --capabilities; "" is what is known without one.
func ReadCapabilities(file string) (*mix.Capabilities, error) {
	known := mix.Known()
	if file == "" {
		return &known, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%w: --capabilities: %w", cli.ErrUsage, err)
	}
	defer f.Close()
	if known, err = mix.ParseCapabilities(f); err != nil {
		return nil, fmt.Errorf("%w: --capabilities %s: %w", cli.ErrUsage, file, err)
	}
	return &known, nil
}
