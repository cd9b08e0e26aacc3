package readme

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrOther: a file shows another table than the one that was made.
var ErrOther = errors.New("the table is another one; -update rewrites it")

// Table checks that a table stands in a file between <!-- mark --> and <!-- end -->, or
// writes it there. It is ErrOther where another one stands.
func Table(path, mark, table string, update bool) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+mark+" -->\n", "<!-- end -->"
	head, rest, ok := strings.Cut(string(data), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no marks for the table %q", path, mark)
	}
	want := head + begin + "\n" + table + "\n" + end + tail
	switch {
	case want == string(data):
		return nil
	case update:
		return os.WriteFile(path, []byte(want), 0o644)
	}
	return fmt.Errorf("%s, %q: %w", path, mark, ErrOther)
}
