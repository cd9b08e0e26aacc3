package perfetto

import (
	"bytes"
	"io"
	"testing"
)

// BenchmarkReader reads slices as PyTorch writes them: all begins, with three
// annotations each, then all ends.
func BenchmarkReader(b *testing.B) {
	const n = 100_000
	input := pkt(packetSequenceID, 1, packetSequenceFlags, flagStateCleared, packetInternedData, msg(internedNames, msg(internedIID, 1, internedText, "gemm")))
	for i := range n {
		input = append(input, ev(1_000_000+10*i, typeSliceBegin, 5, eventNameIID, 1,
			eventAnnotations, msg(annotationName, "stream", annotationInt, 7),
			eventAnnotations, msg(annotationName, "correlation", annotationInt, i),
			eventAnnotations, msg(annotationName, "Collective name", annotationString, "allreduce"))...)
	}
	for i := range n {
		input = append(input, ev(1_000_005+10*i, typeSliceEnd, 5)...)
	}
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(input), Options{})
		events := 0
		for {
			_, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			events++
		}
		if events != n {
			b.Fatalf("%d events, want %d", events, n)
		}
	}
}
