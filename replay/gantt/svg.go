package gantt

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// measures of the picture, in pixels
const (
	pictureWidth = 1200
	leftWidth    = 96 // row names
	rightWidth   = 64 // bubbles
	plotWidth    = pictureWidth - leftWidth - rightWidth
	rowHeight    = 22
	rowGap       = 3
	digitWidth   = 6.0
	textHeight   = 10
)

// SVG draws the figure as a picture that stands alone: no script, no font and
// nothing else is loaded. The error is of the figure or of w.
func (f Figure) SVG(w io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	p := picture{Writer: out, figure: f, end: f.end(), slot: f.slot()}
	p.draw()
	return out.Flush()
}

// picture is an SVG being written. Errors of the writer show when it is flushed.
type picture struct {
	*bufio.Writer
	figure Figure
	end    float64 // of the time axis
	slot   float64
	y      float64
	merged bool
	used   [phases]bool
	shades int // chunks told apart
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(p.Writer, format, args...) }

func (p *picture) draw() {
	f := p.figure
	height := p.measure()
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %s" width="%d" height="%s" role="img" font-family="system-ui, 'DejaVu Sans', Arial, sans-serif" font-size="11">`+"\n",
		pictureWidth, px(height), pictureWidth, px(height))
	title := f.Title
	if title == "" && len(f.Charts) > 0 {
		title = f.Charts[0].Title
	}
	p.printf("<title>%s</title>\n", escape(title))
	p.style()
	p.printf(`<rect class="paper" width="%d" height="%s"/>`+"\n", pictureWidth, px(height))
	p.y = 14
	if f.Title != "" {
		p.y += 10
		p.text(12, p.y, "head", f.Title)
		p.y += 14
	}
	for i, c := range f.Charts {
		p.chart(i, c)
	}
	p.legend()
	p.printf("</svg>\n")
}

// measure is the height of the picture; it finds what the legend needs too.
func (p *picture) measure() float64 {
	height := 14.0
	if p.figure.Title != "" {
		height += 24
	}
	for _, c := range p.figure.Charts {
		rows := shown(len(c.Rows))
		height += 22 + float64(len(rows))*rowPitch(len(rows)) + 28
		if len(rows) < len(c.Rows) {
			height += 14
		}
		for _, b := range c.Bars {
			p.used[b.Phase] = true
			p.shades = max(p.shades, b.Chunk+1)
		}
	}
	return height + 32
}

// rowPitch is the height of a row with its gap: less where there are many.
func rowPitch(rows int) float64 {
	switch {
	case rows > 64:
		return 9
	case rows > 24:
		return 15
	}
	return rowHeight + rowGap
}

func (p *picture) x(at float64) float64 { return leftWidth + at/p.end*plotWidth }

// chart draws one chart and moves down below it.
func (p *picture) chart(i int, c Chart) {
	rows := c.byRow()
	each, all := c.bubbles(rows)
	list := shown(len(c.Rows))
	pitch := rowPitch(len(list))
	thin := pitch < rowHeight
	p.y += 12
	p.text(12, p.y, "name", c.Title)
	p.printf(`<text class="note" x="%d" y="%s" text-anchor="end">%s</text>`+"\n", pictureWidth-12, px(p.y), escape(p.figure.summary(i, all)))
	p.y += 10
	top := p.y
	until := c.until()
	for n, r := range list {
		if n > 0 && list[n-1] != r-1 {
			p.text(leftWidth, p.y+10, "note", fmt.Sprintf("%d rows not drawn", r-list[n-1]-1))
			p.y += 14
		}
		height := pitch - rowGap
		if thin {
			height = pitch - 1
		}
		kind := "idle"
		if c.Rows[r].Beside {
			kind = "beside"
		}
		p.printf(`<rect class="%s" x="%d" y="%s" width="%s" height="%s"/>`, kind, leftWidth, px(p.y), px(p.x(until[r])-leftWidth), px(height))
		if pitch >= 15 || n%4 == 0 {
			baseline := p.y + height/2 + 4
			p.printf(`<text class="row" x="%d" y="%s" text-anchor="end">%s</text>`, leftWidth-8, px(baseline), escape(shorten(c.Rows[r].Name)))
			if !c.Rows[r].Beside {
				p.printf(`<text class="note" x="%d" y="%s" text-anchor="end">%s</text>`, pictureWidth-12, px(baseline), percent(each[r]))
			}
		}
		p.printf("\n")
		for _, d := range merge(rows[r], p.slot) {
			p.bar(c, d, p.y, height)
		}
		p.y += pitch
	}
	p.axis(top, c)
}

// bar draws one bar, or several as one.
func (p *picture) bar(c Chart, d drawn, y, height float64) {
	x, width := p.x(d.Start), p.x(d.End)-p.x(d.Start)
	switch d.Lane {
	case Upper:
		height /= 2
	case Lower:
		y, height = y+height/2, height/2
	}
	if d.count > 1 {
		p.several(c, d, x, y, width, height)
		return
	}
	gap := 0.0
	if width > 4 {
		gap = 0.5 // between neighbours
	}
	p.printf(`<rect class="%s" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`,
		p.class(d.Bar), px(x), px(y), px(max(0.3, width-gap)), px(height), escape(p.figure.describe(c, d.Bar)))
	if number := strconv.Itoa(d.Microbatch); d.Microbatch >= 0 && height >= textHeight && width >= digitWidth*float64(len(number))+1 {
		p.printf(`<text class="mb" x="%s" y="%s">%s</text>`, px(x+width/2), px(y+height/2+3.5), number)
	}
	p.printf("\n")
}

// several draws bars that stand for one: each phase as high as its share.
func (p *picture) several(c Chart, d drawn, x, y, width, height float64) {
	p.merged = true
	all := d.all()
	if all <= 0 {
		return
	}
	opacity := ""
	if span := d.End - d.Start; all < 0.99*span {
		opacity = fmt.Sprintf(` opacity="%.2f"`, max(0.2, all/span))
	}
	var shares []string
	for phase, t := range d.busy {
		if t > 0 {
			shares = append(shares, fmt.Sprintf("%.0f %% %s", 100*t/all, Phase(phase)))
		}
	}
	p.printf(`<g%s><title>%s, %d bars, %s: %s to %s</title>`,
		opacity, escape(c.Rows[d.Row].Name), d.count, strings.Join(shares, ", "), number(d.Start), number(d.End))
	for phase, t := range d.busy {
		if t > 0 {
			part := t / all * height
			p.printf(`<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`,
				p.class(Bar{Phase: Phase(phase), Chunk: d.Chunk}), px(x), px(y), px(max(0.3, width)), px(part))
			y += part
		}
	}
	p.printf("</g>\n")
}

// axis draws the time axis below a chart and the line of its end.
func (p *picture) axis(top float64, c Chart) {
	p.printf(`<path class="axis" d="M%d %sH%d"/>`, leftWidth, px(p.y), pictureWidth-rightWidth)
	step := tickStep(p.end)
	for n := 0; float64(n)*step <= p.end*(1+1e-9); n++ {
		x := p.x(float64(n) * step)
		p.printf(`<path class="axis" d="M%s %sv4"/><text class="note" x="%s" y="%s" text-anchor="middle">%s</text>`,
			px(x), px(p.y), px(x), px(p.y+15), number(float64(n)*step))
	}
	if p.figure.Unit != "" {
		p.printf(`<text class="note" x="%d" y="%s" text-anchor="end">%s</text>`, pictureWidth-12, px(p.y+15), escape(p.figure.Unit))
	}
	end := p.x(c.passes())
	p.printf(`<path class="end" d="M%s %sV%s"/>`+"\n", px(end), px(top-4), px(p.y+4))
	p.y += 28
}

// tickStep is a round distance of ticks, about twelve of them.
func tickStep(end float64) float64 {
	raw := end / 12
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= raw {
			return m * power
		}
	}
	return 10 * power
}

// legend explains the colours.
func (p *picture) legend() {
	p.y += 4
	x := float64(leftWidth)
	entry := func(class, name string) {
		p.printf(`<rect class="%s" x="%s" y="%s" width="14" height="12"/>`, class, px(x), px(p.y))
		p.text(x+19, p.y+10, "note", name)
		x += 19 + 6.4*float64(len(name)) + 16
	}
	for phase := range phases {
		if p.used[phase] {
			entry(p.class(Bar{Phase: Phase(phase), Chunk: 0}), Phase(phase).String())
		}
	}
	entry("idle", "idle")
	note := "numbers: micro-batches"
	if p.shades > 1 {
		note += "; darker to lighter: first to last chunk"
	}
	if p.merged {
		note += "; too many bars: narrow neighbours are drawn as one, phases by share, paler where they leave gaps"
	}
	p.text(x, p.y+10, "note", note)
}

func (p *picture) text(x, y float64, class, text string) {
	p.printf(`<text class="%s" x="%s" y="%s">%s</text>`+"\n", class, px(x), px(y), escape(text))
}

// px is a length with two digits at most.
func px(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(x, 'f', 2, 64), "0"), ".")
}

// shorten fits a row's name into its column.
func shorten(name string) string {
	runes := []rune(name)
	if len(runes) > 13 {
		return string(slices.Concat(runes[:12], []rune("…")))
	}
	return name
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes everything
	return b.String()
}
