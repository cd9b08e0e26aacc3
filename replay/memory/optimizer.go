package memory

import (
	"errors"
	"fmt"
	"strings"
)

// ErrModel: a model is described in a way that makes no sense.
var ErrModel = errors.New("invalid memory model")

// Optimizer is how many bytes each parameter takes.
type Optimizer struct {
	Name     string
	Weight   int64 // that passes use
	Gradient int64
	State    int64 // the optimizer's own, a copy of the weights in full precision included
}

// Optimizers lists those known, the usual one first.
func Optimizers() []Optimizer {
	return []Optimizer{
		{Name: "adam", Weight: 2, Gradient: 2, State: 12},                // mixed precision: fp32 copy and two moments
		{Name: "adam-fp32-gradients", Weight: 2, Gradient: 4, State: 12}, // the same, gradients summed in fp32
		{Name: "adam-fp32", Weight: 4, Gradient: 4, State: 8},            // two moments
		{Name: "sgd", Weight: 4, Gradient: 4},
		{Name: "sgd-momentum", Weight: 4, Gradient: 4, State: 4},
	}
}

// FindOptimizer finds one by its name.
func FindOptimizer(name string) (Optimizer, error) {
	var names []string
	for _, o := range Optimizers() {
		if o.Name == name {
			return o, nil
		}
		names = append(names, o.Name)
	}
	return Optimizer{}, fmt.Errorf("%w: unknown optimizer %q (known: %s)", ErrModel, name, strings.Join(names, " "))
}
