package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mixdown/replay/commlog"
	"mixdown/replay/plan/planpb"
)

// planLog is what the operations of one plan took. Its Log is nil where the plan
// was logged before.
type planLog struct {
	*commlog.Log
	plan *planpb.Plan
}

// newLogs makes the logs of a start, in the order of its plans, nil where none are
// wanted. The baseline is part of every start and logged in the first.
func (e *experiment) newLogs(exp *planpb.Experiment, nth int) []planLog {
	if e.opts.CommsLog == "" {
		return nil
	}
	logs := make([]planLog, len(exp.Plans))
	for i, p := range exp.Plans {
		if i > 0 || nth == 1 {
			logs[i] = planLog{commlog.New(p), p}
		}
	}
	return logs
}

// writeLogs writes a table and a JSON file for each plan and rank:
// DIR/1-all_to_all=openmpi/rank0.log and rank0.json.
func (e *experiment) writeLogs() error {
	made, number := time.Now(), 0
	for _, l := range e.logs {
		if l.Log == nil {
			continue
		}
		dir := filepath.Join(e.opts.CommsLog, fmt.Sprintf("%d-%s", number, fileName(l.plan.Name)))
		number++
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for worker, program := range l.plan.Workload.Programs {
			base := filepath.Join(dir, fmt.Sprintf("rank%d", program.Rank))
			err := writeFile(base+".log", func(w io.Writer) error { return l.Text(w, worker) })
			if err == nil {
				err = writeFile(base+".json", func(w io.Writer) error { return l.JSON(w, worker, made) })
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// maxName bounds a plan's name in a path, in bytes.
const maxName = 80

// fileName is a plan's name with what shells and file systems read otherwise as '_'.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("=-.,", r) {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxName)]
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
