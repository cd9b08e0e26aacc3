package perfetto

import "google.golang.org/protobuf/encoding/protowire"

// Field numbers, by message. The files are those of protos/perfetto/trace.
const (
	// trace.proto: Trace
	tracePacket = 1

	// trace_packet.proto: TracePacket
	packetTimestamp       = 8
	packetClockID         = 58
	packetSequenceID      = 10
	packetSequenceFlags   = 13
	packetStateCleared    = 41
	packetPreviousDropped = 42
	packetDefaults        = 59
	packetInternedData    = 12
	packetTrackEvent      = 11
	packetTrackDescriptor = 60
	packetClockSnapshot   = 6
	packetThread          = 44 // legacy: the thread of the sequence
	packetProcess         = 43 // legacy: the process of the sequence
	packetCompressed      = 50
	packetRenderStage     = 53

	flagStateCleared = 1
	flagNeedsState   = 2

	// trace_packet_defaults.proto: TracePacketDefaults
	defaultsClockID    = 58
	defaultsTrackEvent = 11
	// track_event/track_event.proto: TrackEventDefaults
	defaultsTrackUUID = 11

	// interned_data/interned_data.proto: InternedData
	internedCategories        = 1
	internedNames             = 2
	internedAnnotationNames   = 3
	internedAnnotationStrings = 29
	internedGPUSpecifications = 24
	internedComputeKernels    = 1000 // in the extension GpuInternedData
	internedComputeArgNames   = 1001
	// EventCategory, EventName, DebugAnnotationName, InternedString,
	// InternedGpuRenderStageSpecification, InternedComputeKernel,
	// InternedComputeArgName
	internedIID       = 1
	internedText      = 2
	internedDemangled = 3 // InternedComputeKernel

	// track_event/track_event.proto: TrackEvent
	eventCategoryIIDs   = 3
	eventCategories     = 22
	eventNameIID        = 10
	eventName           = 23
	eventType           = 9
	eventTrackUUID      = 11
	eventFlowIDs        = 47
	eventFlowIDsOld     = 36
	eventAnnotations    = 4
	eventLegacy         = 6
	eventDeltaMicros    = 1
	eventAbsoluteMicros = 16

	typeSliceBegin = 1
	typeSliceEnd   = 2
	typeInstant    = 3
	typeCounter    = 4

	// TrackEvent.LegacyEvent
	legacyNameIID  = 1
	legacyPhase    = 2
	legacyDuration = 3
	legacyPID      = 18
	legacyTID      = 19

	// track_event/debug_annotation.proto: DebugAnnotation
	annotationNameIID   = 1
	annotationName      = 10
	annotationBool      = 2
	annotationUint      = 3
	annotationInt       = 4
	annotationDouble    = 5
	annotationString    = 6
	annotationPointer   = 7
	annotationNested    = 8
	annotationJSON      = 9
	annotationDict      = 11
	annotationArray     = 12
	annotationStringIID = 17

	// DebugAnnotation.NestedValue
	nestedType       = 1
	nestedDictKeys   = 2
	nestedDictValues = 3
	nestedArray      = 4
	nestedInt        = 5
	nestedDouble     = 6
	nestedBool       = 7
	nestedString     = 8
	nestedTypeDict   = 1
	nestedTypeArray  = 2

	// gpu/gpu_render_stage_event.proto: GpuRenderStageEvent
	stageEventID   = 1
	stageDuration  = 2
	stageContext   = 5
	stageExtra     = 6
	stageGPU       = 11
	stageQueueIID  = 13
	stageIID       = 14
	stageName      = 17
	stageKernelIID = 19
	stageNameIID   = 20
	stageLaunch    = 21
	// ExtraData
	extraName  = 1
	extraValue = 2
	// ComputeKernelLaunch
	launchGrid      = 1
	launchWorkgroup = 2
	launchArgs      = 3
	// ExtraComputeArg
	argNameIID = 1
	argName    = 2
	argInt     = 3
	argUint    = 4
	argDouble  = 5
	argString  = 6

	// track_event/track_descriptor.proto: TrackDescriptor
	trackUUID       = 1
	trackParent     = 5
	trackName       = 2
	trackStaticName = 10
	trackAtraceName = 13
	trackProcess    = 3
	trackThread     = 4
	trackCounter    = 8

	// track_event/process_descriptor.proto: ProcessDescriptor
	processPID  = 1
	processName = 6
	// track_event/thread_descriptor.proto: ThreadDescriptor
	threadPID             = 1
	threadTID             = 2
	threadName            = 5
	threadReferenceMicros = 6

	// clock_snapshot.proto: ClockSnapshot and ClockSnapshot.Clock
	snapshotClocks   = 1
	snapshotPrimary  = 2
	clockID          = 1
	clockTimestamp   = 2
	clockIncremental = 3
	clockUnitNS      = 4
)

// unread are payloads of packets that hold events of their own kinds.
var unread = map[protowire.Number]string{
	1: "ftrace_events", 5: "chrome_events", 52: "gpu_counter_event",
	65: "vulkan_api_event", 66: "perf_sample",
}

// field is one field of a message: a number or bytes, as its type is.
type field struct {
	num  protowire.Number
	typ  protowire.Type
	n    uint64 // of varint, fixed32 and fixed64
	data []byte // of length-delimited fields
}

// fields calls f with the fields of message b and reports whether b is whole. f
// returns false where a field is not what it must be, which ends it.
func fields(b []byte, f func(field) bool) bool {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		x := field{num: num, typ: typ}
		switch typ {
		case protowire.VarintType:
			x.n, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			x.n, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			x.n = uint64(v)
		case protowire.BytesType:
			x.data, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return false
		}
		b = b[n:]
		if (typ == protowire.VarintType || typ == protowire.Fixed64Type || typ == protowire.Fixed32Type || typ == protowire.BytesType) && !f(x) {
			return false
		}
	}
	return true
}

// isBytes says whether x is length-delimited: a string or a message.
func (x field) isBytes() bool { return x.typ == protowire.BytesType }

// each calls f with the numbers of a repeated field, packed or not.
func (x field) each(f func(uint64)) bool {
	if !x.isBytes() {
		f(x.n)
		return true
	}
	for b := x.data; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return false
		}
		f(v)
		b = b[n:]
	}
	return true
}
