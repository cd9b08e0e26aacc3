package trace

// NameID stands for an interned string; 0 is the empty string.
type NameID uint32

// Strings interns names: a trace of millions of events has thousands of names.
type Strings struct {
	ids  map[string]NameID
	list []string
}

// NewStrings returns a table that holds the empty string as 0.
func NewStrings() *Strings {
	return &Strings{ids: map[string]NameID{"": 0}, list: []string{""}}
}

// Intern returns the id of b, which it copies if it is new.
func (s *Strings) Intern(b []byte) NameID {
	if id, ok := s.ids[string(b)]; ok { // no allocation
		return id
	}
	return s.InternString(string(b))
}

// InternString is Intern for a string, which it keeps if it is new.
func (s *Strings) InternString(str string) NameID {
	if id, ok := s.ids[str]; ok {
		return id
	}
	id := NameID(len(s.list))
	s.ids[str] = id
	s.list = append(s.list, str)
	return id
}

// Get returns the string of id.
func (s *Strings) Get(id NameID) string { return s.list[id] }

// Len is the number of different strings.
func (s *Strings) Len() int { return len(s.list) }
