package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// layers from the lowest to the highest: a package may import its own layer and
// those before it.
var layers = []string{"ingest", "analyze", "replay", "cmd"}

// TestImportsPointOneWay: ingest <- analyze <- replay <- cmd.
func TestImportsPointOneWay(t *testing.T) {
	checked := 0
	eachFile(t, func(path string, imports []string) {
		own := layerOf(path)
		for _, i := range imports {
			inner, ok := strings.CutPrefix(i, "mixdown/")
			if !ok {
				continue
			}
			checked++
			if layerOf(inner) > own {
				t.Errorf("%s imports %s: imports point from cmd to ingest, never back", path, i)
			}
		}
	})
	if checked < 50 {
		t.Errorf("only %d imports checked", checked)
	}
}

// TestOnlyCommandsPrint: libraries return values and errors.
func TestOnlyCommandsPrint(t *testing.T) {
	eachFile(t, func(path string, imports []string) {
		for _, i := range imports {
			if i == "log" && layerOf(path) < len(layers)-1 {
				t.Errorf("%s imports log: nothing but cmd prints", path)
			}
		}
	})
}

func layerOf(path string) int {
	first, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	for i, l := range layers {
		if l == first {
			return i
		}
	}
	return len(layers)
}

// eachFile visits the project's Go files but tests.
func eachFile(t *testing.T, visit func(path string, imports []string)) {
	t.Helper()
	const top = "../.."
	for _, layer := range layers {
		err := filepath.WalkDir(filepath.Join(top, layer), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			var imports []string
			for _, i := range f.Imports {
				name, err := strconv.Unquote(i.Path.Value)
				if err != nil {
					return err
				}
				imports = append(imports, name)
			}
			relative, err := filepath.Rel(top, path)
			if err != nil {
				return err
			}
			visit(relative, imports)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
