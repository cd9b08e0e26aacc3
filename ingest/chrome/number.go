package chrome

import "math"

// decStatus is the outcome of reading a decimal number.
type decStatus uint8

const (
	decOK       decStatus = iota
	decInexact            // rounded, half away from zero
	decOverflow           // does not fit
	decBad                // not a decimal number
)

// scaleDecimal reads the decimal number b times 10^shift as an integer:
// magnitude and sign. It is exact for every input; digits below the unit are
// rounded half away from zero and reported as decInexact. Beyond JSON it takes
// a leading "+" or ".", a trailing "." and leading zeros.
func scaleDecimal(b []byte, shift int) (mag uint64, neg bool, st decStatus) {
	i := 0
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		neg = b[i] == '-'
		i++
	}
	start := i
	intDigits, digits := -1, 0
	for ; i < len(b); i++ {
		if c := b[i]; c-'0' <= 9 {
			digits++
		} else if c == '.' && intDigits < 0 {
			intDigits = digits
		} else {
			break
		}
	}
	mantissa := b[start:i]
	if intDigits < 0 {
		intDigits = digits
	}
	if digits == 0 {
		return 0, false, decBad
	}
	exp, ok := exponent(b[i:])
	if !ok {
		return 0, false, decBad
	}

	// unit is the number of mantissa digits at or above the unit.
	unit := intDigits + exp + shift
	k := 0
	roundUp, inexact := false, false
	for _, c := range mantissa {
		if c == '.' {
			continue
		}
		d := uint64(c - '0')
		switch {
		case k < unit:
			if mag > (math.MaxUint64-d)/10 {
				return 0, neg, decOverflow
			}
			mag = mag*10 + d
		case d != 0:
			inexact = true
			roundUp = roundUp || k == unit && d >= 5
		}
		k++
	}
	for ; k < unit && mag != 0; k++ {
		if mag > math.MaxUint64/10 {
			return 0, neg, decOverflow
		}
		mag *= 10
	}
	if roundUp {
		if mag == math.MaxUint64 {
			return 0, neg, decOverflow
		}
		mag++
	}
	if inexact {
		return mag, neg, decInexact
	}
	return mag, neg, decOK
}

// exponent reads "", or "e" with an integer. Values beyond any use are clamped.
func exponent(b []byte) (int, bool) {
	if len(b) == 0 {
		return 0, true
	}
	if b[0]|0x20 != 'e' {
		return 0, false
	}
	b = b[1:]
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	e := 0
	for _, c := range b {
		if c-'0' > 9 {
			return 0, false
		}
		if e < 1<<30 {
			e = e*10 + int(c-'0')
		}
	}
	if neg {
		e = -e
	}
	return e, true
}

// scaleInt is scaleDecimal for int64.
func scaleInt(b []byte, shift int) (int64, decStatus) {
	mag, neg, st := scaleDecimal(b, shift)
	switch {
	case st > decInexact:
		return 0, st
	case neg && mag <= 1<<63:
		return -int64(mag), st // 1<<63 wraps to the smallest int64, as it should
	case !neg && mag < 1<<63:
		return int64(mag), st
	}
	return 0, decOverflow
}

// microsToNanos reads decimal microseconds as ns.
func microsToNanos(b []byte) (int64, decStatus) {
	// The short way, without checks for overflow at each digit, covers what
	// profilers write: Unix time has 16 digits before the point, and three
	// after it are ns.
	var n int64
	i := 0
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		i = 1
	}
	first := i
	for i < len(b) && b[i]-'0' <= 9 {
		n = n*10 + int64(b[i]-'0')
		i++
		if i-first > 16 {
			return scaleInt(b, 3)
		}
	}
	if i == first || n >= math.MaxInt64/1000 {
		return scaleInt(b, 3)
	}
	if i < len(b) && b[i] == '.' {
		frac := i + 1
		if len(b)-frac > 3 {
			return scaleInt(b, 3)
		}
		for i = frac; i < len(b) && b[i]-'0' <= 9; i++ {
			n = n*10 + int64(b[i]-'0')
		}
		for k := i - frac; k < 3; k++ {
			n *= 10
		}
	} else {
		n *= 1000
	}
	if i < len(b) {
		return scaleInt(b, 3)
	}
	if neg {
		n = -n
	}
	return n, decOK
}
