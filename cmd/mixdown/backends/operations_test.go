package backends

import (
	"strings"
	"testing"

	"mixdown/replay/launch"
)

func TestTableOfOperations(t *testing.T) {
	list := []launch.Backend{
		{Name: "gloo", Operations: []launch.Operation{{Op: "all_reduce", Native: true}, {Op: "gatherv", ComposedOf: "point-to-point messages"}}},
		{Name: "nccl"},
		{Name: "mpich", Operations: []launch.Operation{{Op: "all_reduce", Native: true}, {Op: "gatherv", Native: true}}},
	}
	var b strings.Builder
	if err := writeOperations(&b, list); err != nil {
		t.Fatal(err)
	}
	want := `
operation   gloo      mpich
all_reduce  native    native
gatherv     composed  native
gatherv on gloo is composed of point-to-point messages
`
	if b.String() != want {
		t.Errorf("got %s\nwant %s", b.String(), want)
	}
	b.Reset()
	if err := writeOperations(&b, list[1:2]); err != nil || b.Len() > 0 {
		t.Errorf("%v, %q of backends that can't run", err, b.String())
	}
}
