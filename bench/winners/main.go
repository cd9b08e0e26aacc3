// Command winners runs "mixdown tune" twice and holds the tables against each other:
// wherever both say that a library wins by more than the noise it has to be the same
// one. The table is worth choosing from as far as that is so.
//
// It ends with 1 when they contradict each other somewhere, with 2 when something did
// not run or nothing can be compared.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mixdown/replay/tune"
)

func main() {
	mixdown := flag.String("mixdown", "bin/mixdown", "the `program` to run")
	budget := flag.Duration("budget", 2*time.Minute, "of each run")
	flags := flag.String("flags", "--ranks 2,4 --sizes 64:4MiB --no-refine", "of mixdown tune, with blanks between")
	flag.Parse()
	contradictions, err := run(*mixdown, *budget, strings.Fields(*flags))
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "winners:", err)
		os.Exit(2)
	case contradictions > 0:
		os.Exit(1)
	}
}

func run(mixdown string, budget time.Duration, flags []string) (contradictions int, err error) {
	dir, err := os.MkdirTemp("", "winners-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	var tables [2]*tune.Table
	for i := range tables {
		name := filepath.Join(dir, fmt.Sprint(i, tune.Extension))
		args := append([]string{"tune", "-o", name, "--quiet", "--budget", budget.String(), "--seed", fmt.Sprint(i + 1)}, flags...)
		c := exec.Command(mixdown, args...)
		c.Stderr = os.Stderr
		if err := c.Run(); err != nil {
			return 0, fmt.Errorf("mixdown %s: %w", strings.Join(args, " "), err)
		}
		if tables[i], err = tune.Read(name); err != nil {
			return 0, err
		}
	}
	list := compare(tables[0], tables[1])
	if len(list) == 0 {
		return 0, fmt.Errorf("the tables of %d and %d measurements have no place in common: give them more --budget", len(tables[0].Rows), len(tables[1].Rows))
	}
	var both, same int
	for _, p := range list {
		same += one(p.a.Winner == p.b.Winner)
		if !p.a.Clear || !p.b.Clear {
			continue
		}
		both++
		if p.a.Winner != p.b.Winner {
			contradictions++
			fmt.Printf("  %s, %d bytes: %s by %.2f, then %s by %.2f\n", p.Question, p.a.Bytes, p.a.Winner, p.a.Gain, p.b.Winner, p.b.Gain)
		}
	}
	fmt.Printf("\n%d places in both tables, the same winner at %d; at %d it wins by more than the noise in both, the same at %d, another at %d\n",
		len(list), same, both, both-contradictions, contradictions)
	return contradictions, nil
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pair is the outcome of one place in both tables.
type pair struct {
	tune.Question
	a, b *tune.Place
}

// compare lists the places at which both tables have more than one contender.
func compare(a, b *tune.Table) []pair {
	type place struct {
		tune.Question
		bytes int64
	}
	first := map[place]*tune.Place{}
	each := func(t *tune.Table, do func(place, *tune.Place)) {
		for _, c := range tune.Compare(t, nil) {
			for i := range c.Places {
				if p := &c.Places[i]; len(p.Times) > 1 {
					do(place{c.Question, p.Bytes}, p)
				}
			}
		}
	}
	each(a, func(k place, p *tune.Place) { first[k] = p })
	var list []pair
	each(b, func(k place, p *tune.Place) {
		// A contender that one table lacks may be who won in the other.
		if f := first[k]; f != nil && len(f.Times) == len(p.Times) {
			list = append(list, pair{k.Question, f, p})
		}
	})
	slices.SortStableFunc(list, func(x, y pair) int { return cmp.Compare(x.String(), y.String()) })
	return list
}
