package diff

import (
	"slices"
	"testing"

	"mixdown/analyze/collective"
)

func TestRoles(t *testing.T) {
	for _, c := range []struct {
		group collective.Group
		want  string
	}{
		{collective.Group{Name: "0", Description: "default_pg", Ranks: []int{0, 1, 2, 3}}, "default_pg"},
		{collective.Group{Name: "7", Description: "undefined", Ranks: []int{0, 1, 2, 3}}, "all ranks"},
		{collective.Group{Name: "7", Ranks: []int{1, 3}}, "groups of 2, stride 2"},
		{collective.Group{Name: "mesh_tp", Ranks: []int{1, 3}}, "mesh_tp"},
		{collective.Group{Ranks: []int{2, 0, 3}}, "ranks 0, 2-3"},
		{collective.Group{Ranks: []int{2}}, "single ranks"},
		{collective.Group{Inferred: true, Ranks: []int{0, 1, 2, 3}}, "all ranks"},
		{collective.Group{Name: "12"}, "unknown"},
	} {
		if got := RoleOf(&c.group, 4); got != c.want {
			t.Errorf("%+v is %q, want %q", c.group, got, c.want)
		}
	}
}

// TestRenameOnlyWithoutDoubt: members that two groups have tell neither apart.
func TestRenameOnlyWithoutDoubt(t *testing.T) {
	pairs := func(names ...string) roles {
		var groups []collective.Group
		for _, n := range names {
			groups = append(groups, collective.Group{Name: n, Ranks: []int{0, 1}})
		}
		return rolesOf(groups, 4)
	}
	all := func(string, bool) bool { return true }
	for _, c := range []struct{ a, b, want []string }{
		{[]string{"tp"}, []string{"mp"}, []string{"tp"}},
		{[]string{"tp", "cp"}, []string{"mp"}, []string{"mp"}},
		{[]string{"tp"}, []string{"mp", "cp"}, []string{"mp", "cp"}},
		{[]string{"tp", "cp"}, []string{"cp", "mp"}, []string{"cp", "tp"}},
	} {
		a, b := pairs(c.a...), pairs(c.b...)
		b.rename(&a, all)
		if !slices.Equal(b.of, c.want) {
			t.Errorf("%v and %v: renamed to %v, want %v", c.a, c.b, b.of, c.want)
		}
	}
	// A group without operations is in nobody's way.
	a, b := pairs("tp", "unused"), pairs("mp")
	b.rename(&a, func(role string, _ bool) bool { return role != "unused" })
	if b.of[0] != "tp" {
		t.Errorf("renamed to %v", b.of)
	}
}
