package html

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrPicture: a picture is not of the kind that a page takes in.
var ErrPicture = errors.New("not a picture of pipeline orders")

// Picture is an SVG that was checked, to stand in a page.
type Picture struct {
	Title string
	svg   string // without its style
	light string // its style, as it is in light
	dark  string // what dark surroundings change
}

// maxPicture is the largest picture taken in, in bytes.
const maxPicture = 4 << 20

// What a picture may hold: shapes and text. Nothing of it loads, links or runs.
var (
	allowedElements = set("svg", "title", "desc", "style", "defs", "pattern", "g", "rect", "path", "line", "text")
	allowedAttrs    = set("xmlns", "viewBox", "width", "height", "role", "font-family", "font-size", "font-weight", "class", "id", "x", "y", "x1", "y1", "x2", "y2",
		"d", "opacity", "text-anchor", "patternUnits", "patternTransform", "fill", "stroke", "stroke-width", "transform", "aria-label")
)

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

// NewPicture checks an SVG as package gantt draws them. It is written again from
// what was understood, so that nothing else of it reaches the page.
func NewPicture(title string, data []byte) (Picture, error) {
	p := Picture{Title: title}
	if len(data) > maxPicture {
		return p, fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrPicture, len(data), maxPicture)
	}
	dec := xml.NewDecoder(bytes.NewReader(data))
	var out strings.Builder
	var style strings.Builder
	var open []string
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return p, fmt.Errorf("%w: %w", ErrPicture, err)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if err := writeStart(&out, t, len(open) == 0); err != nil {
				return p, err
			}
			open = append(open, t.Name.Local)
		case xml.EndElement:
			open = open[:len(open)-1]
			if t.Name.Local != "style" {
				out.WriteString("</" + t.Name.Local + ">")
			}
		case xml.CharData:
			switch {
			case len(open) == 0:
			case open[len(open)-1] == "style":
				style.Write(t)
			default:
				_ = xml.EscapeText(&out, t) // a strings.Builder takes everything
			}
		case xml.Directive, xml.ProcInst:
			return p, fmt.Errorf("%w: it has a declaration", ErrPicture)
		}
	}
	if out.Len() == 0 {
		return p, fmt.Errorf("%w: it is empty", ErrPicture)
	}
	p.svg = out.String()
	return p, p.takeStyle(style.String())
}

// writeStart writes an element with those attributes that are allowed; others
// are an error, for a picture that is half understood would mislead.
func writeStart(out *strings.Builder, t xml.StartElement, root bool) error {
	if !allowedElements[t.Name.Local] || root != (t.Name.Local == "svg") {
		return fmt.Errorf("%w: element %q", ErrPicture, cut(t.Name.Local, 40))
	}
	if t.Name.Local == "style" {
		return nil
	}
	out.WriteString("<" + t.Name.Local)
	for _, a := range t.Attr {
		if a.Name.Space != "" || !allowedAttrs[a.Name.Local] || strings.Contains(a.Value, "url(") {
			return fmt.Errorf("%w: attribute %q", ErrPicture, cut(a.Name.Local, 40))
		}
		if a.Name.Local == "xmlns" {
			continue // HTML knows what an svg is
		}
		var value strings.Builder
		_ = xml.EscapeText(&value, []byte(a.Value))
		out.WriteString(" " + a.Name.Local + `="` + value.String() + `"`)
	}
	out.WriteString(">")
	return nil
}

// darkQuery begins the part of a picture's style for dark surroundings.
const darkQuery = "@media (prefers-color-scheme:dark){"

// takeStyle keeps a style that is rules of classes and colours only.
func (p *Picture) takeStyle(style string) error {
	light, dark, _ := strings.Cut(style, darkQuery)
	dark = strings.TrimSuffix(strings.TrimSpace(dark), "}")
	for _, part := range []string{light, dark} {
		plain := strings.ReplaceAll(part, "url(#hatch)", "")
		if strings.ContainsAny(plain, "@<\\&/*") || strings.Contains(plain, "url(") || strings.Contains(plain, "expression") || !balanced(plain) {
			return fmt.Errorf("%w: its style is not understood", ErrPicture)
		}
	}
	p.light, p.dark = light, dark
	return nil
}

// balanced says whether rules are closed and not nested, so that a style can't
// reach beyond the block it is put in.
func balanced(style string) bool {
	depth := 0
	for _, c := range style {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth < 0 || depth > 1 {
			return false
		}
	}
	return depth == 0
}

// scoped is the picture and its style for the nth place in a page: ids are told
// apart, rules hold within its block, and dark follows the page's choice.
func (p *Picture) scoped(n int) (svg, style string) {
	id := fmt.Sprintf("hatch-%d", n)
	svg = strings.ReplaceAll(p.svg, `id="hatch"`, `id="`+id+`"`)
	block := fmt.Sprintf(".picture-%d", n)
	at := func(s string) string { return strings.ReplaceAll(s, "url(#hatch)", "url(#"+id+")") }
	style = prefixed(at(p.light), block) +
		"@media screen{" + prefixed(at(p.dark), ":root[data-theme=dark] "+block) + "}\n" +
		"@media screen and (prefers-color-scheme:dark){" + prefixed(at(p.dark), ":root:not([data-theme=light]) "+block) + "}\n"
	return svg, style
}

// prefixed puts a selector before each of those of plain rules.
func prefixed(style, prefix string) string {
	var b strings.Builder
	for rule := range strings.SplitSeq(style, "}") {
		selectors, declarations, ok := strings.Cut(rule, "{")
		if !ok {
			continue // what follows the last rule
		}
		for i, s := range strings.Split(selectors, ",") {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(prefix + " " + strings.TrimSpace(s))
		}
		b.WriteString("{" + declarations + "}\n")
	}
	return b.String()
}
