package sizing

import (
	"strings"
	"testing"
)

func TestParseQuantity(t *testing.T) {
	units := map[string]int64{"b": 1e9, "mib": 1 << 20}
	for text, want := range map[string]int64{
		"0": 0, "52e9": 52e9, "52E9": 52e9, "1.5B": 1_500_000_000, "128MiB": 128 << 20, "128 MiB": 128 << 20, "0.5mib": 1 << 19, "12345": 12345,
	} {
		if got, err := parseQuantity(text, units); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "B", "-1", "1/2", "0.1", "1e99", "1e999999999", "1e-5", "0x10", "1e", "1Q", "9e18B", "1_000", "e9", strings.Repeat("9", 50)} {
		if got, err := parseQuantity(text, units); err == nil {
			t.Errorf("%q: read as %d", text, got)
		}
	}
}
