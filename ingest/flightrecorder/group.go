package flightrecorder

import (
	"strconv"
	"strings"

	"mixdown/ingest/comm"
)

// group returns the index of the group that an entry names; its name and
// description are a pair.
func (r *filler) group(v value, id Int) int {
	names, _ := elements(v)
	key := groupKey{id: id}
	desc := ""
	if len(names) > 0 {
		key.name, _ = names[0].(string)
	}
	if len(names) > 1 {
		desc = description(names[1])
	}
	if len(names) == 0 && !id.Known {
		return -1
	}
	i, ok := r.groups[key]
	if !ok {
		i = r.addGroup(Group{Group: comm.Group{Name: key.name, Description: desc}, ID: id})
		r.groups[key] = i
	}
	return i
}

func (r *filler) addGroup(g Group) int {
	i := len(r.dump.Groups)
	r.dump.Groups = append(r.dump.Groups, g)
	if g.Name != "" {
		r.byName[g.Name] = append(r.byName[g.Name], i)
	}
	if _, have := r.byID[g.ID.V]; g.ID.Known && !have {
		r.byID[g.ID.V] = i
	}
	return i
}

// description reads a group's description; "undefined" is none.
func description(v value) string {
	s, _ := v.(string)
	if s == "undefined" {
		return ""
	}
	return s
}

// describeGroups adds what pg_config and pg_status say. The former knows groups
// by name, the latter by the number that entries have.
func (r *filler) describeGroups(config, status value) error {
	d := r.dump
	described := map[int]bool{}
	if c, ok := config.(*dict); ok {
		for _, p := range c.pairs {
			r.describe(p.key, p.value, described)
			if err := r.spent(); err != nil {
				return err
			}
		}
		for i := range d.Groups {
			if !described[i] {
				d.note(CodeMissingGroup, "group %.80q", d.Groups[i].Name)
			}
		}
	} else if config != nil {
		d.badField("pg_config", config)
	}
	s, ok := status.(*dict)
	if !ok {
		if status != nil {
			d.badField("pg_status", status)
		}
		return nil
	}
	for _, p := range s.pairs {
		id, ok := intOf(p.key)
		m, isDict := p.value.(*dict)
		if !ok || !isDict {
			d.badField("pg_status", p.value)
			continue
		}
		i, have := r.byID[id]
		if !have {
			i = r.addGroup(Group{ID: known(id)})
		}
		g := &d.Groups[i]
		g.LastEnqueued = d.progress(m, "last_enqueued_collective")
		g.LastStarted = d.progress(m, "last_started_collective")
		g.LastCompleted = d.progress(m, "last_completed_collective")
	}
	return nil
}

// progress reads a sequence number; -1 means none yet.
func (d *Dump) progress(m *dict, key string) Int {
	if n := d.int(m, key); n.V >= 0 {
		return n
	}
	return Int{}
}

// describe gives the members of a group to all groups of that name.
func (r *filler) describe(key, v value, described map[int]bool) {
	d := r.dump
	m, ok := v.(*dict)
	if !ok {
		d.badField("pg_config", v)
		return
	}
	name := d.text(m, "name")
	if name == "" {
		name, _ = keyText(key)
	}
	if name == "" {
		// Gloo writes all its groups under the empty name, one over the other.
		d.note(CodeUnnamedGroup, "pg_config has a group without a name")
		return
	}
	desc := description(m.get("desc"))
	ranks, ok := r.ranks(m.get("ranks"))
	if !ok {
		d.note(CodeBadRanks, "group %.80q", name)
	}
	found := false
	for _, i := range r.byName[name] {
		g := &d.Groups[i]
		r.room--
		if g.Description != "" && desc != "" && g.Description != desc {
			continue
		}
		found, described[i] = true, true
		if g.Description == "" {
			g.Description = desc
		}
		g.Ranks, g.Size = ranks, len(ranks)
	}
	if !found {
		i := r.addGroup(Group{Group: comm.Group{Name: name, Description: desc, Ranks: ranks, Size: len(ranks)}})
		described[i] = true
	}
}

// maxRank bounds what is believed to be a rank.
const maxRank = 10_000_000

// ranks reads the members of a group, a list or the text of one.
func (r *filler) ranks(v value) ([]int, bool) {
	var texts []string
	switch x := v.(type) {
	case nil:
		return nil, true
	case string:
		inner, ok := strings.CutPrefix(strings.TrimSpace(x), "[")
		inner, ok2 := strings.CutSuffix(inner, "]")
		if !ok || !ok2 {
			return nil, false
		}
		if strings.TrimSpace(inner) == "" {
			return nil, true
		}
		if r.room -= strings.Count(inner, ",") + 1; r.room < 0 {
			return nil, false
		}
		texts = strings.Split(inner, ",")
	case *list:
		if r.room -= len(x.items); r.room < 0 {
			return nil, false
		}
		for _, item := range x.items {
			n, ok := intOf(item)
			if _, isText := item.(string); !ok || isText {
				return nil, false
			}
			texts = append(texts, strconv.FormatInt(n, 10))
		}
	default:
		return nil, false
	}
	ranks := make([]int, 0, len(texts))
	for _, s := range texts {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 0 || n > maxRank {
			return nil, false
		}
		ranks = append(ranks, n)
	}
	return ranks, true
}
