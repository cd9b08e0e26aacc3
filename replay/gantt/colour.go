package gantt

import (
	"fmt"
	"math"
)

// shades is how many chunks are told apart; the next ones begin again.
const shades = 8

// hues and saturations by phase, told apart by those who see few colours too:
// forward is cold, backward warm, and they differ in lightness.
var palette = [phases]struct{ hue, saturation float64 }{
	Forward:        {212, 0.72},
	Backward:       {28, 0.88},
	InputGradient:  {8, 0.70},
	WeightGradient: {158, 0.50},
	Communication:  {280, 0.45},
	Other:          {0, 0.02},
}

// class is the style of a bar: its phase and shade.
func (p *picture) class(b Bar) string {
	shade := b.Chunk % shades
	if b.Chunk < 0 {
		shade = (min(max(1, p.shades), shades) - 1) / 2
	}
	return fmt.Sprintf("b p%d s%d", b.Phase, shade)
}

// style writes the colours, for light and for dark surroundings.
func (p *picture) style() {
	p.printf(`<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="gap" width="6" height="6"/><path class="hatch" d="M0 0V6"/></pattern></defs>` + "\n<style>\n")
	p.printf("text{fill:#24292f}.head{font-size:15px;font-weight:600}.name{font-size:12px;font-weight:600}.note{fill:#57606a;font-size:10px}.mb{fill:#fff;font-size:10px;text-anchor:middle;pointer-events:none}.paper{fill:#fff}.idle{fill:url(#hatch)}.beside{fill:#f6f8fa}.gap{fill:#eef0f2}.hatch{stroke:#d5d9de;stroke-width:2}.axis{stroke:#8c959f;fill:none}.end{stroke:#cf222e;fill:none;stroke-dasharray:3 2}\n")
	p.colours(0.34, 0.66, "#24292f")
	p.printf("@media (prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9da7b3}.mb{fill:#0d1117}.paper{fill:#0d1117}.beside{fill:#161b22}.gap{fill:#161b22}.hatch{stroke:#2b323b}.axis{stroke:#6e7681}.end{stroke:#ff7b72}\n")
	p.colours(0.46, 0.78, "#0d1117")
	p.printf("}\n</style>\n")
}

// colours writes the phases' colours between two lightnesses, and numbers on them
// in whichever of white and dark can be read.
func (p *picture) colours(first, last float64, dark string) {
	count := min(max(1, p.shades), shades)
	for phase, c := range palette {
		if !p.used[phase] {
			continue
		}
		for s := range count {
			lightness := first + 0.06
			if count > 1 {
				lightness = first + (last-first)*float64(s)/float64(count-1)
			}
			fill := channels(c.hue, c.saturation, lightness)
			text := "#fff"
			if luminance(fill) > 0.24 {
				text = dark
			}
			p.printf(".p%d.s%d{fill:#%02x%02x%02x}.p%d.s%d+.mb{fill:%s}", phase, s, fill[0], fill[1], fill[2], phase, s, text)
		}
		p.printf("\n")
	}
}

// channels is a colour given by hue in degrees, saturation and lightness as red,
// green and blue from 0 to 255.
func channels(hue, saturation, lightness float64) [3]int {
	channel := func(n float64) int {
		k := math.Mod(n+hue/30, 12)
		a := saturation * min(lightness, 1-lightness)
		return int(math.Round(255 * (lightness - a*max(-1, min(k-3, 9-k, 1)))))
	}
	return [3]int{channel(0), channel(8), channel(4)}
}

// luminance is how light a colour looks, from 0 to 1, as WCAG computes it.
func luminance(c [3]int) float64 {
	linear := func(n int) float64 { return math.Pow(float64(n)/255, 2.2) }
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}
