// Command mixdown finds what communication and pipeline bubbles cost a
// distributed training run, and measures what other backends would give.
package main

import (
	"os"

	"mixdown/cmd/mixdown/root"
)

func main() {
	os.Exit(root.Main(os.Args[1:]))
}
