package export

// Field numbers of Perfetto's protobufs, from the files named, below
// protos/perfetto/trace in https://github.com/google/perfetto.
const (
	// trace.proto: Trace
	tracePacket = 1

	// trace_packet.proto: TracePacket
	packetTimestamp       = 8
	packetSequenceID      = 10 // trusted_packet_sequence_id
	packetTrackEvent      = 11
	packetInternedData    = 12
	packetSequenceFlags   = 13
	packetTrackDescriptor = 60

	// TracePacket.SequenceFlags
	stateCleared = 1 // SEQ_INCREMENTAL_STATE_CLEARED
	needsState   = 2 // SEQ_NEEDS_INCREMENTAL_STATE

	// interned_data/interned_data.proto: InternedData, and iid and text of its
	// entries EventCategory, EventName, DebugAnnotationName, InternedString
	internedCategories = 1
	internedNames      = 2
	internedNoteNames  = 3
	internedNoteTexts  = 29
	internedIID        = 1
	internedText       = 2

	// track_event/track_event.proto: TrackEvent
	eventCategories   = 3 // category_iids
	eventAnnotations  = 4 // debug_annotations
	eventType         = 9
	eventName         = 10 // name_iid
	eventTrack        = 11 // track_uuid
	eventDoubleValue  = 44 // double_counter_value
	eventFlows        = 47 // flow_ids, fixed64
	typeBegin         = 1
	typeEnd           = 2
	typeInstant       = 3
	typeCounter       = 4
	annotationName    = 1  // debug_annotation.proto: DebugAnnotation.name_iid
	annotationInt     = 4  // int_value
	annotationTextIID = 17 // string_value_iid

	// track_event/track_descriptor.proto: TrackDescriptor
	trackUUID        = 1
	trackName        = 2
	trackProcess     = 3
	trackParent      = 5
	trackCounter     = 8
	trackOrdering    = 11 // child_ordering
	trackOrderRank   = 12 // sibling_order_rank
	orderingExplicit = 3

	// track_event/process_descriptor.proto: ProcessDescriptor
	processPID  = 1
	processName = 6

	// track_event/counter_descriptor.proto: CounterDescriptor
	counterUnitName = 6
)
