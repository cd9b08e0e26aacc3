package exports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// tree is JSON of objects alone whose order counts, as MPICH's selection trees are.
type tree struct {
	key      string
	children []*tree
}

func leaf(key string) *tree { return &tree{key: key} }

func branch(key string, children ...*tree) *tree { return &tree{key, children} }

// child finds a child by its key, nil if there is none.
func (t *tree) child(key string) *tree {
	for _, c := range t.children {
		if c.key == key {
			return c
		}
	}
	return nil
}

// maxDepth bounds the nesting of a tree that is read.
const maxDepth = 64

// parseTree reads a tree.
func parseTree(data []byte) (*tree, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	root := &tree{}
	if err := root.read(dec, 0); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the tree")
	}
	return root, nil
}

// read reads an object as the children.
func (t *tree) read(dec *json.Decoder, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested more than %d times", maxDepth)
	}
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return errors.Join(errors.New("expected an object"), err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		c := &tree{key: fmt.Sprint(key)}
		if err := c.read(dec, depth+1); err != nil {
			return fmt.Errorf("%s: %w", c.key, err)
		}
		t.children = append(t.children, c)
	}
	_, err := dec.Token()
	return err
}

// write writes the children as an object.
func (t *tree) write(b *strings.Builder, indent string) {
	if len(t.children) == 0 {
		b.WriteString("{}")
		return
	}
	b.WriteString("{\n")
	for i, c := range t.children {
		key, _ := json.Marshal(c.key) // of a string: never fails
		text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(key))
		fmt.Fprintf(b, "%s  %s: ", indent, text)
		c.write(b, indent+"  ")
		if i < len(t.children)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString(indent + "}")
}
