package diff

import (
	"fmt"
	"slices"
	"strings"

	"mixdown/analyze/collective"
	"mixdown/analyze/report"
)

// unknownRole is that of groups of which nothing is known.
const unknownRole = "unknown"

// RoleOf is what a group is for, as far as it can be told in a way that is the
// same in another run of the job.
func RoleOf(g *collective.Group, world int) string {
	if d := g.Description; d != "" && d != "undefined" {
		return d
	}
	if g.Name != "" && strings.Trim(g.Name, "0123456789") != "" {
		return g.Name
	}
	return shapeOf(g, world)
}

// How shapes begin that depend on the size of the world.
const (
	shapeGroups = "groups of "
	shapeRanks  = "ranks "
)

// shapeOf describes the members of a group so that groups in the same place of a
// regular layout are alike.
func shapeOf(g *collective.Group, world int) string {
	n := len(g.Ranks)
	if g.Inferred || n > 0 && n == world {
		return "all ranks"
	}
	if n == 0 {
		return unknownRole
	}
	if n == 1 {
		return "single ranks"
	}
	stride := g.Ranks[1] - g.Ranks[0]
	for i := 1; i < n; i++ {
		if g.Ranks[i]-g.Ranks[i-1] != stride {
			return shapeRanks + report.Ranges(slices.Sorted(slices.Values(g.Ranks)))
		}
	}
	return fmt.Sprintf("%s%d, stride %d", shapeGroups, n, stride)
}

// roles are the roles of one run's groups.
type roles struct {
	of     []string            // by index into the matching's groups
	shapes map[string][]string // of each role, sorted
}

func rolesOf(groups []collective.Group, world int) roles {
	r := roles{shapes: map[string][]string{}}
	for i := range groups {
		role := RoleOf(&groups[i], world)
		r.of = append(r.of, role)
		shape := shapeOf(&groups[i], world)
		if !slices.Contains(r.shapes[role], shape) {
			r.shapes[role] = append(r.shapes[role], shape)
		}
	}
	for _, s := range r.shapes {
		slices.Sort(s)
	}
	return r
}

// clone is a copy that can be renamed.
func (r *roles) clone() roles { return roles{of: slices.Clone(r.of), shapes: r.shapes} }

// rename gives roles that only b has the names that only a has, where the
// members leave no doubt: profilers of different versions describe groups
// differently or not at all. It returns what it renamed, as "of a = of b".
func (r *roles) rename(a *roles, used func(role string, inA bool) bool) []string {
	alone := func(of, other *roles, inA bool) map[string][]string {
		byShape := map[string][]string{}
		for role, shapes := range of.shapes {
			if _, both := other.shapes[role]; !both && role != unknownRole && used(role, inA) {
				k := strings.Join(shapes, "\n")
				byShape[k] = append(byShape[k], role)
			}
		}
		return byShape
	}
	var renamed []string
	inA, inB := alone(a, r, true), alone(r, a, false)
	for shape, mine := range inB {
		if theirs := inA[shape]; len(mine) == 1 && len(theirs) == 1 {
			for i, role := range r.of {
				if role == mine[0] {
					r.of[i] = theirs[0]
				}
			}
			renamed = append(renamed, fmt.Sprintf("%s = %s", theirs[0], mine[0]))
		}
	}
	slices.Sort(renamed)
	return renamed
}
