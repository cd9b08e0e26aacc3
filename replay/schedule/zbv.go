package schedule

// zbv places two chunks per rank in a V, so that rank 0 holds both the first
// stage and the last, and splits backwards. With forward, input gradient and
// weight gradient of equal length no rank idles between its first action and
// its last, at the memory of 1F1B.
//
// Source: ZBV of sail-sg/zero-bubble-pipeline-parallelism in the form of
// PyTorch's ScheduleZBVZeroBubble. It is laid out for at least 2p-1
// micro-batches; for fewer, the actions of those that don't exist are left out.
func zbv(s Shape) (Order, error) {
	return rows(s.Ranks, func(r int) []Action {
		down := chunkCursor{stage: V.Stage(s.Ranks, r, 0)}
		up := chunkCursor{stage: V.Stage(s.Ranks, r, 1)}
		total := max(2*s.Ranks-1, s.Microbatches)
		row := sparseRow{limit: s.Microbatches}

		for range 2*(s.Ranks-r) - 1 {
			row.add(down.forward())
		}
		for range r {
			row.add(up.forward(), down.forward())
		}
		for range s.Ranks - r {
			row.add(up.forward(), up.input(), up.weight())
		}
		for down.forwards < total || up.forwards < down.forwards {
			if down.forwards < total {
				row.add(down.forward())
			}
			row.add(down.input(), down.weight(), up.forward(), up.input(), up.weight())
		}
		for range r {
			row.add(down.input(), up.input())
		}
		for range s.Ranks - r {
			row.add(down.input(), down.weight())
		}
		for up.weights < up.inputs {
			row.add(up.weight())
		}
		for down.weights < down.inputs {
			row.add(down.weight())
		}
		return row.actions
	}), nil
}

// chunkCursor hands out a chunk's micro-batches in order, each kind of action
// with its own count.
type chunkCursor struct {
	stage                     int
	first                     int // its first micro-batch
	forwards, inputs, weights int // inputs counts full backwards too
}

func (c *chunkCursor) forward() Action {
	c.forwards++
	return forward(c.stage, c.first+c.forwards-1)
}

func (c *chunkCursor) input() Action {
	c.inputs++
	return input(c.stage, c.first+c.inputs-1)
}

func (c *chunkCursor) backward() Action {
	c.inputs++
	return backward(c.stage, c.first+c.inputs-1)
}

func (c *chunkCursor) weight() Action {
	c.weights++
	return weight(c.stage, c.first+c.weights-1)
}

// sparseRow collects the actions of micro-batches below its limit.
type sparseRow struct {
	limit   int
	actions []Action
}

func (s *sparseRow) add(actions ...Action) {
	for _, a := range actions {
		if int(a.Microbatch) < s.limit {
			s.actions = append(s.actions, a)
		}
	}
}
