package measure

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Hardware describes this machine on one line, as far as it says.
func Hardware() string {
	parts := []string{fmt.Sprintf("%d cores", runtime.NumCPU())}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if model, ok := field(string(data), "model name"); ok {
			parts[0] += " of " + model
		}
	}
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		if total, ok := field(string(data), "MemTotal"); ok {
			if kib, err := strconv.ParseInt(strings.TrimSuffix(total, " kB"), 10, 64); err == nil {
				parts = append(parts, fmt.Sprintf("%d GiB", (kib+1<<19)>>20))
			}
		}
	}
	return strings.Join(parts, ", ")
}

// field is the value of the first line "name : value".
func field(text, name string) (string, bool) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
