package plan

import "mixdown/ingest/trace"

// window is the time of the chosen step on one rank, ns.
type window struct{ start, end int64 }

// chooseStep picks the step to replay. It returns the step's name, "" for the whole trace.
func chooseStep(run *trace.Run, name string) (string, []window, error) {
	step, err := run.ChooseStep(name)
	if err != nil {
		return "", nil, err
	}
	var windows []window
	if step == nil {
		for _, rank := range run.Ranks {
			start, end := rank.Extent()
			windows = append(windows, window{start, end})
		}
		return "", windows, nil
	}
	for _, of := range step.Ranks {
		windows = append(windows, window{of.Start, of.End})
	}
	return step.Name, windows, nil
}

// StepName is the step that Options.Step chooses, "" for the whole trace.
func StepName(run *trace.Run, name string) (string, error) {
	step, err := run.ChooseStep(name)
	if step == nil {
		return "", err
	}
	return step.Name, nil
}
