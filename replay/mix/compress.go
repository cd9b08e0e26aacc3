package mix

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

var (
	// ErrCompressionSyntax: a list of compressions could not be read.
	ErrCompressionSyntax = errors.New("invalid compression")
	// ErrNothingToCompress: no operation of the workload can have the codec.
	ErrNothingToCompress = errors.New("nothing to compress")
)

// CodeNotCompressed counts operations that a rule matches and that stay as they are.
const CodeNotCompressed = "compression-not-applied"

// Compression is a list of rules; the first that matches an operation says how its
// payload is compressed. Without one it stays as it is.
type Compression struct {
	Text  string // as the user wrote it
	Rules []CompressionRule
}

// CompressionRule compresses the operations that it matches. Its Backend is unused.
type CompressionRule struct {
	Rule
	Codec *planpb.Compression
}

// ParseCompression reads rules as a mix has them, with codecs in the place of
// backends: "all_reduce@>=16MiB=zfp:rate=8,all_to_all=fp8".
func ParseCompression(text string) (Compression, error) {
	c := Compression{Text: strings.TrimSpace(text)}
	for part := range strings.SplitSeq(c.Text, ",") {
		part = strings.TrimSpace(part)
		// The last '=' separates, unless it is of zfp's setting.
		at := strings.LastIndexByte(part, '=')
		if colon := strings.LastIndexByte(part, ':'); colon >= 0 && colon < at {
			if before := strings.LastIndexByte(part[:colon], '='); before >= 0 {
				at = before
			}
		}
		if at <= 0 {
			return c, fmt.Errorf("%w %q: rule %q: expected OPERATION=CODEC, for example all_reduce@>=1MiB=zfp:rate=8", ErrCompressionSyntax, text, part)
		}
		rule, err := parseMatch(part, part[:at])
		if err != nil {
			return c, fmt.Errorf("%w %q: %w", ErrCompressionSyntax, text, err)
		}
		codec, err := parseCodec(part[at+1:])
		if err != nil {
			return c, fmt.Errorf("%w %q: %w", ErrCompressionSyntax, text, err)
		}
		c.Rules = append(c.Rules, CompressionRule{rule, codec})
	}
	return c, nil
}

// Rates of zfp: below 3 bits a block of four holds little but its exponent.
const minRate, maxRate = 3, 63.75

// parseCodec reads "zfp:rate=8", "bf16", "fp8", "fp8:e4m3" or "fp8:e5m2".
func parseCodec(text string) (*planpb.Compression, error) {
	switch text {
	case "bf16":
		return &planpb.Compression{Codec: planpb.Compression_BFLOAT16}, nil
	case "fp8", "fp8:e4m3":
		return &planpb.Compression{Codec: planpb.Compression_FLOAT8_E4M3FN}, nil
	case "fp8:e5m2":
		return &planpb.Compression{Codec: planpb.Compression_FLOAT8_E5M2}, nil
	}
	library, setting, _ := strings.Cut(text, ":")
	if library != "zfp" {
		return nil, fmt.Errorf("codec %q: known are zfp:rate=BITS, bf16, fp8, fp8:e4m3, fp8:e5m2", text)
	}
	rate, ok := strings.CutPrefix(setting, "rate=")
	if !ok {
		return nil, fmt.Errorf("codec %q: expected zfp:rate=BITS; in zfp's other modes the size depends on the data, and members would have to tell each other first", text)
	}
	bits, err := strconv.ParseFloat(rate, 64)
	if err != nil || !(bits >= minRate && bits <= maxRate) || bits*4 != float64(int(bits*4)) {
		return nil, fmt.Errorf("codec %q: expected a multiple of 1/4 bit for each element, from %d to %v", text, minRate, maxRate)
	}
	return &planpb.Compression{Codec: planpb.Compression_ZFP, Rate: bits}, nil
}

// CodecName is what ParseCompression reads, "" for none.
func CodecName(c *planpb.Compression) string {
	switch c.GetCodec() {
	case planpb.Compression_BFLOAT16:
		return "bf16"
	case planpb.Compression_FLOAT8_E4M3FN:
		return "fp8:e4m3"
	case planpb.Compression_FLOAT8_E5M2:
		return "fp8:e5m2"
	case planpb.Compression_ZFP:
		return "zfp:rate=" + strconv.FormatFloat(c.Rate, 'g', -1, 64)
	}
	return ""
}

// codecBits are the bits of a compressed element.
func codecBits(c *planpb.Compression) float64 {
	switch c.GetCodec() {
	case planpb.Compression_ZFP:
		return c.Rate
	case planpb.Compression_BFLOAT16:
		return 16
	}
	return 8
}

// floatBits are the bits of the floats that a type is made of, 0 where those can't be
// compressed.
func floatBits(d planpb.DType) float64 {
	switch d {
	case planpb.DType_DTYPE_FLOAT64, planpb.DType_DTYPE_COMPLEX128:
		return 64
	case planpb.DType_DTYPE_FLOAT32, planpb.DType_DTYPE_COMPLEX64:
		return 32
	case planpb.DType_DTYPE_FLOAT16, planpb.DType_DTYPE_BFLOAT16:
		return 16
	}
	return 0
}

// codec is how an operation of a size, on a group, is compressed, nil where no rule
// matches. Of a message both sides must do alike, and one may be part of a batch where
// the other is not: send, recv and batch are one here.
func (c Compression) codec(op *planpb.Communication, bytes int64, g *planpb.Group) *planpb.Compression {
	name := opName(op)
	for _, r := range c.Rules {
		if name.IsP2P() && r.Op.IsP2P() {
			r.Op = name
		}
		if name != comm.Barrier && r.matches(name, bytes, g.Name, g.Description) {
			return r.Codec
		}
	}
	return nil
}

// Compress makes a workload whose operations are compressed by the rules, and
// returns how many are, each rank's counted. All who take part decide alike, because
// they go by sizes and types that all know. What is matched and has no floats, or
// would not become smaller, is counted in the diagnostics.
func Compress(w *planpb.Workload, c Compression) (*planpb.Workload, int, *diagnostic.Set) {
	out, diags, applied := proto.CloneOf(w), &diagnostic.Set{}, 0
	sizes := measure(out)
	for _, program := range out.Programs {
		for _, t := range program.Tasks {
			op := t.GetCommunication()
			if op == nil {
				continue
			}
			codec := c.codec(op, sizes.of(program.Rank, op), out.Groups[op.Group])
			if codec == nil {
				continue
			}
			if why := notCompressed(op, codec); why != "" {
				diags.Addf(CodeNotCompressed, int(program.Rank), diagnostic.NoOffset, "%s of %d bytes goes as it is: %s", opName(op), plan.Bytes(op), why)
				continue
			}
			op.Compression = proto.CloneOf(codec)
			applied++
		}
	}
	return out, applied, diags
}

// notCompressed says why a codec is not for an operation, "" when it is.
func notCompressed(op *planpb.Communication, codec *planpb.Compression) string {
	switch bits := floatBits(op.Dtype); {
	case bits == 0:
		return "only floats of 16 bits and more can be compressed, not " + dtypeName(op)
	case codecBits(codec) >= bits:
		return fmt.Sprintf("%s does not make %s smaller", CodecName(codec), dtypeName(op))
	}
	return ""
}

// Codecs lists the codecs of a plan, by name, sorted.
func Codecs(p *planpb.Plan) []string {
	var names []string
	for _, program := range p.GetWorkload().GetPrograms() {
		for _, t := range program.Tasks {
			if name := CodecName(t.GetCommunication().GetCompression()); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
