// Package version is the command "mixdown version".
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
)

// Number is the release.
const Number = "0.1.0"

// described is what git describe says of the commit that a package was built from:
// scripts/dist.sh has the linker set it.
var described string

// String is the release with the commit it was built from, when known.
func String() string {
	s := Number
	if described != "" {
		if described != "v"+Number {
			s += " (" + described + ")"
		}
		return s
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
				s += " (" + setting.Value[:12] + ")"
			}
		}
	}
	return s
}

// NewCmd makes the command.
func NewCmd(streams *cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "The version of mixdown",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(streams.Out, "mixdown %s, %s %s/%s\n", String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
