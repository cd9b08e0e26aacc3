package comm

import "strings"

// DType is an element type, in PyTorch's Python spelling.
type DType string

// The element types that PyTorch sends.
const (
	Float32      DType = "float32"
	Float64      DType = "float64"
	Float16      DType = "float16"
	BFloat16     DType = "bfloat16"
	Int8         DType = "int8"
	Uint8        DType = "uint8"
	Int16        DType = "int16"
	Uint16       DType = "uint16"
	Int32        DType = "int32"
	Uint32       DType = "uint32"
	Int64        DType = "int64"
	Uint64       DType = "uint64"
	Bool         DType = "bool"
	Complex64    DType = "complex64"
	Complex128   DType = "complex128"
	Float8E4M3FN DType = "float8_e4m3fn"
	Float8E5M2   DType = "float8_e5m2"
)

var dtypeSizes = map[DType]int64{
	Float32: 4, Float64: 8, Float16: 2, BFloat16: 2,
	Int8: 1, Uint8: 1, Int16: 2, Uint16: 2, Int32: 4, Uint32: 4, Int64: 8, Uint64: 8, Bool: 1,
	Complex64: 8, Complex128: 16, Float8E4M3FN: 1, Float8E5M2: 1,
}

// Reducible says whether libraries combine elements of the type: they move 8-bit
// floats, but none adds them.
func (d DType) Reducible() bool { return d != Float8E4M3FN && d != Float8E5M2 }

// Size is the size of one element in bytes; it is 0 for types that are not
// known here.
func (d DType) Size() int64 { return dtypeSizes[d] }

// dtypeNames maps the C++ scalar names of "dtype" ("Float"), the C++ type
// names of "Input type" ("long int", "c10::BFloat16") and the Python names.
var dtypeNames = map[string]DType{
	"float": Float32, "float32": Float32,
	"double": Float64, "float64": Float64,
	"half": Float16, "c10::half": Float16, "float16": Float16,
	"bfloat16": BFloat16, "c10::bfloat16": BFloat16,
	"char": Int8, "signed char": Int8, "int8": Int8,
	"byte": Uint8, "unsigned char": Uint8, "uint8": Uint8,
	"short": Int16, "short int": Int16, "int16": Int16,
	"int": Int32, "int32": Int32,
	"long": Int64, "long int": Int64, "long long": Int64, "int64": Int64,
	"uint16": Uint16, "unsigned short": Uint16, "short unsigned int": Uint16,
	"uint32": Uint32, "unsigned int": Uint32,
	"uint64": Uint64, "unsigned long": Uint64, "long unsigned int": Uint64, "unsigned long long": Uint64,
	"bool":         Bool,
	"complexfloat": Complex64, "complex64": Complex64, "c10::complex<float>": Complex64,
	"complexdouble": Complex128, "complex128": Complex128, "c10::complex<double>": Complex128,
	"float8_e4m3fn": Float8E4M3FN, "c10::float8_e4m3fn": Float8E4M3FN,
	"float8_e5m2": Float8E5M2, "c10::float8_e5m2": Float8E5M2,
	// Other machines' 8-bit floats: moved the same.
	"float8_e4m3fnuz": Float8E4M3FN, "c10::float8_e4m3fnuz": Float8E4M3FN,
	"float8_e5m2fnuz": Float8E5M2, "c10::float8_e5m2fnuz": Float8E5M2,
}

// ParseDType reads any of the spellings found in traces.
func ParseDType(name string) (DType, bool) {
	d, ok := dtypeNames[strings.ToLower(strings.TrimSpace(name))]
	return d, ok
}
