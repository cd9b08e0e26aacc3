package pipeline

import (
	"reflect"
	"testing"
)

func TestReadLabel(t *testing.T) {
	for name, want := range map[string][]action{
		"PP:0F0":                          {{computing, Forward, 0, 0}},
		"PP:12B34":                        {{computing, Backward, 12, 34}},
		"PP:3BW1":                         {{computing, Backward, 3, 1}},
		"PP:3I1":                          {{computing, InputGradient, 3, 1}},
		"PP:3W1":                          {{computing, WeightGradient, 3, 1}},
		"PP:2SEND_F1":                     {{sending, Forward, 2, 1}},
		"PP:2RECV_B1":                     {{receiving, Backward, 2, 1}},
		"PP:2WAIT_SEND_B1":                {{waitingSend, Backward, 2, 1}},
		"PP:1UNSHARD":                     {{gradients, Forward, 1, Unknown}},
		"PP:1WAIT_REDUCE_GRAD":            {{gradients, Forward, 1, Unknown}},
		"PP:(0F5;7B3)OVERLAP_F_B":         {{computing, Forward, 0, 5}, {computing, Backward, 7, 3}},
		"Forward 3":                       {{computing, Forward, Unknown, 3}},
		"Backward 0":                      {{computing, Backward, Unknown, 0}},
		"Forward":                         nil,
		"Forward 3 again":                 nil,
		"DistributedDataParallel.forward": nil,
		"":                                nil,
	} {
		got, odd := readLabel(name)
		if odd || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, odd %v, want %v", name, got, odd, want)
		}
	}
	for _, name := range []string{"PP:999999999F1", "PP:99999999999999999999F1", "PP:0F", "PP:F0", "PP:0F-1", "PP:", "PP:0F1 ",
		"PP:0X1", "PP:(0F5;7B3", "PP:(0F5;7SEND_B3)OVERLAP_F_B", "PP:(0F1;0F2;0F3)OVERLAP_F_B", "PP:()OVERLAP_F_B", "PP:0F99999"} {
		if got, odd := readLabel(name); !odd || got != nil {
			t.Errorf("%q: %v, odd %v", name, got, odd)
		}
	}
}

func FuzzReadLabel(f *testing.F) {
	for _, name := range []string{"PP:0F0", "PP:(0F5;7B3)OVERLAP_F_B", "Forward 3", "PP:1UNSHARD"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		actions, odd := readLabel(name)
		if odd && actions != nil || len(actions) > 2 {
			t.Errorf("%q: %v, odd %v", name, actions, odd)
		}
		for _, a := range actions {
			if a.stage < Unknown || a.stage >= maxIndex || a.microbatch < Unknown || a.microbatch >= maxIndex {
				t.Errorf("%q: %+v", name, a)
			}
		}
	})
}
