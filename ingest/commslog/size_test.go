package commslog

import "testing"

// printed holds sizes and what convert_size of deepspeed/utils/comms_logging.py
// makes of them, from a run of that function in Python 3.11.
var printed = []struct {
	bytes int64
	text  string
}{
	{71054924364741, "64.62 TB"},
	{888024773588631, "807.65 TB"},
	{683915271066247, "622.02 TB"},
	{1091, "1.07 KB"},
	{106728, "104.23 KB"},
	{1073741825, "1.0 GB"},
	{955, "955.0 B"},
	{12525283569, "11.67 GB"},
	{1099511627776, "1.0 TB"},
	{1099511627777, "1.0 TB"},
	{2470455, "2.36 MB"},
	{759405089737689, "690.67 TB"},
	{586521437020581, "533.44 TB"},
	{1099511627779, "1.0 TB"},
	{2714370, "2.59 MB"},
	{1099511627775, "1024.0 GB"},
	{1448, "1.41 KB"},
	{3286889, "3.13 MB"},
	{2411013677, "2.25 GB"},
	{465447773625428, "423.32 TB"},
	{885457430577450, "805.32 TB"},
	{117336, "114.59 KB"},
	{3527, "3.44 KB"},
	{4366653015, "4.07 GB"},
	{3344068, "3.19 MB"},
	{4088626995, "3.81 GB"},
	{1987140, "1.9 MB"},
	{574339047702950, "522.36 TB"},
	{4091768, "3.9 MB"},
	{1028, "1.0 KB"},
	{10840048365, "10.1 GB"},
	{2703, "2.64 KB"},
	{296651, "289.7 KB"},
	{2369534, "2.26 MB"},
	{3942, "3.85 KB"},
	{840570, "820.87 KB"},
	{1099511627775, "1024.0 GB"},
	{1048575, "1024.0 KB"},
	{1048576, "1.0 MB"},
	{1073741824, "1.0 GB"},
	{711831552, "678.86 MB"},
	{103022592, "98.25 MB"},
}

func TestParseSizeHoldsThePrinted(t *testing.T) {
	for _, p := range printed {
		lo, hi, ok := parseSize(p.text)
		if !ok || p.bytes < lo || p.bytes > hi {
			t.Errorf("%q = [%d, %d] %v, does not hold %d", p.text, lo, hi, ok, p.bytes)
		}
	}
}

func TestParseSize(t *testing.T) {
	for _, c := range []struct {
		text   string
		lo, hi int64 // lo -1: not a size
	}{
		{"0B", 0, 0},
		{"1.0 B", 1, 1},
		{"128.0 B", 128, 128},
		{"1023.0 B", 1023, 1023},
		{"1.0 KB", 1024, 1029},
		{"2.0 KB", 2043, 2053},
		{"1024.0 KB", 1048571, 1048576},
		{"678.86 MB", 711831061, 711841546},
		{"1.45 GB", 1551556936, 1562294353},
		{"8.0 EB", -1, 0},
		{"1.5 B", -1, 0},
		{"-1.0 KB", -1, 0},
		{"2000.0 KB", -1, 0},
		{"KB", -1, 0},
		{"1.0 XB", -1, 0},
		{"1.0", -1, 0},
		{"", -1, 0},
		{"99999999999999999999999999 KB", -1, 0},
	} {
		lo, hi, ok := parseSize(c.text)
		if want := c.lo >= 0; ok != want || ok && (lo != c.lo || hi != c.hi) {
			t.Errorf("parseSize(%q) = %d, %d, %v; want %d, %d", c.text, lo, hi, ok, c.lo, c.hi)
		}
	}
}

func TestMillis(t *testing.T) {
	for _, c := range []struct {
		text string
		ns   int64
		ok   bool
	}{
		{"9.46", 9_460_000, true},
		{"0.00", 0, true},
		{"8317.12", 8_317_120_000, true},
		{"-0.01", -10_000, true},
		{"11.119999885559082", 11_120_000, true},
		{"0.0000004", 0, true},
		{"0.0000005", 1, true},
		{"1e-05", 10, true},
		{"1.5e+03", 1_500_000_000, true},
		{"9223372036854.775807", 9_223_372_036_854_775_807, true},
		{"9223372036854.775808", 0, false},
		{"9223372036854.7758075", 0, false},
		{"1e999", 0, false},
		{"1e9999999999", 0, false},
		{"0e999", 0, true},
		{"1e-999", 0, true},
		{"nan", 0, false},
		{"", 0, false},
		{".5", 0, false},
		{"1.2.3", 0, false},
	} {
		ns, ok := millis(c.text)
		if ok != c.ok || ok && ns != c.ns {
			t.Errorf("millis(%q) = %d, %v; want %d, %v", c.text, ns, ok, c.ns, c.ok)
		}
	}
}
