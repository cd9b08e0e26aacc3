package mix

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"mixdown/replay/plan/planpb"
)

// Extension is that of plan files.
const Extension = ".plan"

// planVersion is the schema_version of plan files.
const planVersion = 1

// ErrNotPlan: a file is no plan.
var ErrNotPlan = errors.New("not a plan")

// Encode writes plans as a plan file: an Experiment of plan.proto without
// settings. The same plans give the same bytes, and the file begins with the two
// bytes 08 01, its schema_version. What "mixdown replay --keep" leaves as
// experiment.pb is such a file too.
func Encode(plans ...*planpb.Plan) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(&planpb.Experiment{SchemaVersion: planVersion, Plans: plans})
	if err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	return data, nil
}

// Decode reads a plan file, or its protobuf JSON.
func Decode(data []byte) (*planpb.Experiment, error) {
	exp := &planpb.Experiment{}
	if text := bytes.TrimLeft(data, " \t\r\n"); len(text) > 0 && text[0] == '{' {
		if err := protojson.Unmarshal(text, exp); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotPlan, err)
		}
		return checked(exp)
	}
	if len(data) < 2 || data[0] != 0x08 {
		return nil, fmt.Errorf("%w: it does not begin with a schema_version (\"mixdown plan\" makes plans from traces)", ErrNotPlan)
	}
	if err := proto.Unmarshal(data, exp); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotPlan, err)
	}
	return checked(exp)
}

// checked refuses plans of other versions.
func checked(exp *planpb.Experiment) (*planpb.Experiment, error) {
	if exp.SchemaVersion != planVersion {
		return nil, fmt.Errorf("%w of this version of mixdown: schema_version %d, expected %d", ErrNotPlan, exp.SchemaVersion, planVersion)
	}
	if len(exp.Plans) == 0 {
		return nil, fmt.Errorf("%w: there is none in it", ErrNotPlan)
	}
	return exp, nil
}
