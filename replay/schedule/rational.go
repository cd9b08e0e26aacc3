package schedule

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// maxDigits bounds the numbers that ParseRational reads, so that hostile input
// can't ask for one of a million digits: 64 in a whole number or a decimal, 64
// each above and below a fraction's line. Results may grow beyond.
const (
	maxDigits       = 64
	maxResultDigits = 1 << 16
)

// Rational is an exact number. The zero value is 0; values are never modified.
type Rational struct {
	r *big.Rat // nil is 0
}

// Int is the whole number n.
func Int(n int64) Rational { return Rational{new(big.Rat).SetInt64(n)} }

// Ratio is a/b. It panics if b is 0.
func Ratio(a, b int64) Rational { return Rational{big.NewRat(a, b)} }

// ParseRational reads a whole number, a decimal ("0.25") or a fraction ("1/4").
func ParseRational(text string) (Rational, error) { return parseRational(text, maxDigits) }

func parseRational(text string, most int) (Rational, error) {
	if len(text) > 2*most+2 {
		return Rational{}, fmt.Errorf("number of %d characters: at most %d digits are read", len(text), most)
	}
	digits := strings.TrimPrefix(text, "-")
	above, below, fraction := strings.Cut(digits, "/")
	if !fraction {
		above = strings.Replace(digits, ".", "", 1)
		if strings.HasPrefix(digits, ".") || strings.HasSuffix(digits, ".") {
			above = ""
		}
		below = "1"
	}
	if !allDigits(above) || !allDigits(below) {
		return Rational{}, fmt.Errorf("not a number: %q (write it as 3, 0.5 or 1/2)", text)
	}
	if len(above) > most || len(below) > most {
		return Rational{}, fmt.Errorf("number of %d digits: at most %d are read", max(len(above), len(below)), most)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return Rational{}, fmt.Errorf("not a number: %q divides by zero", text)
	}
	return Rational{r}, nil
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func (a Rational) rat() *big.Rat {
	if a.r == nil {
		return new(big.Rat)
	}
	return a.r
}

// Add is a+b.
func (a Rational) Add(b Rational) Rational { return Rational{new(big.Rat).Add(a.rat(), b.rat())} }

// Sub is a-b.
func (a Rational) Sub(b Rational) Rational { return Rational{new(big.Rat).Sub(a.rat(), b.rat())} }

// Mul is a·b.
func (a Rational) Mul(b Rational) Rational { return Rational{new(big.Rat).Mul(a.rat(), b.rat())} }

// Quo is a/b. It panics if b is 0.
func (a Rational) Quo(b Rational) Rational { return Rational{new(big.Rat).Quo(a.rat(), b.rat())} }

// Cmp is -1, 0 or +1 as a is less than, equal to or greater than b.
func (a Rational) Cmp(b Rational) int { return a.rat().Cmp(b.rat()) }

// Equal says whether a and b are the same number.
func (a Rational) Equal(b Rational) bool { return a.Cmp(b) == 0 }

// Sign is -1, 0 or +1 as a is negative, zero or positive.
func (a Rational) Sign() int { return a.rat().Sign() }

// Int64 is a as an integer, false if a is a fraction or too big.
func (a Rational) Int64() (int64, bool) {
	r := a.rat()
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

// String is a whole number ("105") or a fraction in lowest terms ("3/35").
func (a Rational) String() string { return a.rat().RatString() }

// Decimal is a with so many digits after the point, rounded half away from
// zero: for people, not for calculation.
func (a Rational) Decimal(digits int) string { return a.rat().FloatString(digits) }

// MarshalJSON writes whole numbers as numbers and fractions as strings.
func (a Rational) MarshalJSON() ([]byte, error) {
	if a.rat().IsInt() {
		return []byte(a.String()), nil
	}
	return []byte(`"` + a.String() + `"`), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Rational) UnmarshalJSON(data []byte) error {
	text := string(data)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	n, err := parseRational(text, maxResultDigits)
	if err != nil {
		return err
	}
	*a = n
	return nil
}
