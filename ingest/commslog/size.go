package commslog

import (
	"math/big"
	"strings"
)

// units in the order of their powers of 1024. DeepSpeed's convert_size knows
// more; beyond 8 EB no size fits int64.
var units = []string{"B", "KB", "MB", "GB", "TB", "PB", "EB"}

// exactLog is the largest power of 1024 at which floor(log(size, 1024)) in
// floating point, which chooses the unit, is right for every size.
const exactLog = 4

// parseSize reads a humanised size and returns the sizes in bytes that print
// like it: "0B", "128.0 B" (exact), "98.25 MB". The number is
// round(size / 1024^i, 2), so it stands for all sizes within half a hundredth
// of the unit.
func parseSize(s string) (lo, hi int64, ok bool) {
	s = strings.TrimSpace(s)
	i := len(s)
	for i > 0 && s[i-1] >= 'A' && s[i-1] <= 'Z' {
		i--
	}
	number := strings.TrimSpace(s[:i])
	power := -1
	for p, u := range units {
		if s[i:] == u {
			power = p
		}
	}
	if power < 0 || len(number) > 24 {
		return 0, 0, false
	}
	hundredths, ok := scaled(number, 2)
	if !ok || hundredths < 0 {
		return 0, 0, false
	}
	if power == 0 {
		return hundredths / 100, hundredths / 100, hundredths%100 == 0
	}
	// In two-hundredths of the unit: bounds are (2h-1)/200 and (2h+1)/200.
	unit := new(big.Int).Lsh(big.NewInt(1), uint(10*power))
	bound := func(half int64, up int64) int64 {
		n := new(big.Int).Mul(big.NewInt(half), unit)
		n.Add(n, big.NewInt(up))
		n.Quo(n, big.NewInt(200))
		if !n.IsInt64() {
			return -1
		}
		return n.Int64()
	}
	if hundredths > 1024*100 {
		return 0, 0, false
	}
	lo, hi = bound(max(2*hundredths-1, 0), 199), bound(2*hundredths+1, 0)
	if lo < 0 || hi < 0 {
		return 0, 0, false
	}
	// The unit is the largest that is not more than the size.
	if power <= exactLog {
		lo = max(lo, unit.Int64())
		hi = min(hi, unit.Int64()<<10)
	}
	return lo, hi, lo <= hi
}

// scaled reads a decimal number times 10^digits, rounded half away from zero.
// It takes an exponent as Python writes it for small and large floats.
func scaled(s string, digits int) (int64, bool) {
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	mantissa, exponent, hasExp := s, 0, false
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, hasExp = s[:i], true
		e := s[i+1:]
		down := strings.HasPrefix(e, "-")
		e = strings.TrimLeft(e, "+-")
		if len(e) == 0 || len(e) > 3 || !allDigits(e) {
			return 0, false
		}
		for _, c := range []byte(e) {
			exponent = exponent*10 + int(c-'0')
		}
		if down {
			exponent = -exponent
		}
	}
	whole, frac, point := strings.Cut(mantissa, ".")
	if !allDigits(whole) || !allDigits(frac) || whole == "" || point && frac == "" && hasExp {
		return 0, false
	}
	all := whole + frac
	unit := len(whole) + exponent + digits // digits of all at or above the unit
	var n uint64
	for i := range max(unit, 0) {
		d := uint64(0)
		if i < len(all) {
			d = uint64(all[i] - '0')
		} else if n == 0 {
			break
		}
		if n > (1<<63-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if unit >= 0 && unit < len(all) && all[unit] >= '5' {
		n++
	}
	if n > 1<<63-1 {
		return 0, false
	}
	if neg {
		return -int64(n), true
	}
	return int64(n), true
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// millis reads decimal milliseconds as nanoseconds.
func millis(s string) (int64, bool) { return scaled(s, 6) }
