package html_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"mixdown/analyze/html"
)

const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10" width="10" height="10" role="img"><title>orders &lt;b&gt;</title>
<defs><pattern id="hatch" width="6" height="6"><path d="M0 0V6"/></pattern></defs>
<style>
.idle{fill:url(#hatch)}.p0.s0{fill:#112233}
@media (prefers-color-scheme:dark){.p0.s0{fill:#aabbcc}
}
</style>
<rect class="b p0 s0" x="0" y="1" width="3" height="2"><title>0F0</title></rect><text x="1" y="2">rank 0</text></svg>`

// TestPicturesKeepTheirStyle to themselves, in both themes.
func TestPicturesKeepTheirStyle(t *testing.T) {
	p := &html.Page{}
	for range 2 {
		pic, err := html.NewPicture("orders", []byte(drawing))
		if err != nil {
			t.Fatal(err)
		}
		p.Orders = append(p.Orders, pic)
	}
	page := write(t, p)
	checkSafe(t, page)
	for _, want := range []string{
		`class="picture picture-1 scroll"`, `id="hatch-0"`, `id="hatch-1"`, "fill:url(#hatch-1)", "\n.picture-0 .idle{", "\n.picture-1 .p0.s0{fill:#112233}", ":root[data-theme=dark] .picture-1 .p0.s0{fill:#aabbcc}",
		"<title>orders &lt;b&gt;</title>", "<title>0F0</title>",
	} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page does not hold %q", want)
		}
	}
}

// TestPicturesThatDoMore are refused: a file may come from anywhere.
func TestPicturesThatDoMore(t *testing.T) {
	for name, change := range map[string][2]string{
		"script":            {"<title>0F0</title>", "<script>alert(1)</script>"},
		"handler":           {`class="b p0 s0"`, `onload="alert(1)"`},
		"link":              {"<title>0F0</title>", `<a href="https://example.org">x</a>`},
		"foreign object":    {"<title>0F0</title>", "<foreignObject><p>x</p></foreignObject>"},
		"image":             {"<title>0F0</title>", `<image href="https://example.org/x.png"/>`},
		"use":               {"<title>0F0</title>", `<use xlink:href="#x"/>`},
		"inline style":      {`class="b p0 s0"`, `style="fill:url(https://example.org)"`},
		"fill that loads":   {`class="b p0 s0"`, `fill="url(https://example.org)"`},
		"import":            {".idle{", `@import "https://example.org/x.css";.idle{`},
		"style that loads":  {"#112233", "url(https://example.org/x.png)"},
		"style that closes": {".p0.s0{fill:#112233}", ".p0.s0{fill:#112233}}body{display:none}{"},
		"style with markup": {".p0.s0{fill:#112233}", "&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt;"},
		"escape in style":   {"#112233", `\75rl(x)`},
		"doctype":           {"<svg", `<!DOCTYPE svg [<!ENTITY x "y">]><svg`},
		"cut short":         {"</svg>", ""},
		"not a picture":     {drawing, "<html></html>"},
		"empty":             {drawing, ""},
		"svg in svg":        {"<title>0F0</title>", "<svg></svg>"},
		"too large":         {"<title>0F0</title>", "<title>" + strings.Repeat("x", 5<<20) + "</title>"},
	} {
		text := strings.Replace(drawing, change[0], change[1], 1)
		if text == drawing {
			t.Fatalf("%s: nothing changed", name)
		}
		if _, err := html.NewPicture("x", []byte(text)); !errors.Is(err, html.ErrPicture) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
