package plan

import "mixdown/replay/plan/planpb"

// MeetingKey names what several ranks do together, the same on all of them: a
// collective by its group and sequence number, a transfer by its group, ends and
// match.
type MeetingKey struct {
	Group    int32
	Seq      int64 // of a transfer its match
	From, To int32 // global ranks of a transfer
	Transfer bool
}

// CollectiveKey is the key of a collective.
func CollectiveKey(c *planpb.Communication) MeetingKey {
	return MeetingKey{Group: c.Group, Seq: c.Seq}
}

// TransferKey is the key of one transfer of a communication of a rank.
func TransferKey(rank int32, c *planpb.Communication, t *planpb.Transfer) MeetingKey {
	k := MeetingKey{Group: c.Group, Seq: t.Match, From: t.Peer, To: rank, Transfer: true}
	if t.Send {
		k.From, k.To = rank, t.Peer
	}
	return k
}
