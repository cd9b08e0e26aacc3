package sim

import "math"

// Fidelity is how well a model describes the steps it is made of.
type Fidelity struct {
	Measured  int64   // ns, mean length of the recorded steps
	Simulated int64   // ns, of the recorded order, played
	Ratio     float64 // Simulated / Measured
}

// off is how far the simulation is from what was measured, as a share of it.
func (f Fidelity) off() float64 { return math.Abs(f.Ratio - 1) }

// fidelity plays the recorded order.
func (m *Model) fidelity(opts Options) (Fidelity, error) {
	run, err := Play(m.order, m.Costs(m.order, Shape{}), opts)
	if err != nil {
		return Fidelity{}, err
	}
	return Fidelity{Measured: m.Measured, Simulated: run.Step, Ratio: float64(run.Step) / float64(m.Measured)}, nil
}
