package exports

import (
	"regexp"
	"strings"

	"mixdown/replay/mix"
)

// rulePattern cuts a rule into its left side, the library and its settings; those
// of NCCL may have a "=" of their own.
var rulePattern = regexp.MustCompile(`^(.*?)=([A-Za-z_][A-Za-z0-9_-]*)(:.*)?$`)

// ParseMix reads a mix whose libraries may all have settings, "openmpi:ring": those
// that the worker can't set for one operation, but a library's own files can.
func ParseMix(text string) (mix.Mix, error) {
	var plain, settings []string
	for part := range strings.SplitSeq(text, ",") {
		m := rulePattern.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return mix.Parse(text) // it says what is wrong
		}
		plain, settings = append(plain, m[1]+"="+m[2]), append(settings, m[3])
	}
	parsed, err := mix.Parse(strings.Join(plain, ","))
	if err != nil {
		return parsed, err
	}
	parsed.Text = text
	for i := range parsed.Rules {
		parsed.Rules[i].Backend += settings[i]
	}
	return parsed, nil
}
