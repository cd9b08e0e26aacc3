package comm

import "strings"

// DType is an element type, in PyTorch's Python spelling.
type DType string

// The element types that PyTorch sends.
const (
	Float32  DType = "float32"
	Float64  DType = "float64"
	Float16  DType = "float16"
	BFloat16 DType = "bfloat16"
	Int8     DType = "int8"
	Uint8    DType = "uint8"
	Int16    DType = "int16"
	Int32    DType = "int32"
	Int64    DType = "int64"
	Bool     DType = "bool"
)

var dtypeSizes = map[DType]int64{
	Float32: 4, Float64: 8, Float16: 2, BFloat16: 2,
	Int8: 1, Uint8: 1, Int16: 2, Int32: 4, Int64: 8, Bool: 1,
}

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
	"bool": Bool,
	// Moved as bytes; nothing reduces them on the way.
	"float8_e4m3fn": Uint8, "float8_e5m2": Uint8,
	"c10::float8_e4m3fn": Uint8, "c10::float8_e5m2": Uint8,
}

// ParseDType reads any of the spellings found in traces.
func ParseDType(name string) (DType, bool) {
	d, ok := dtypeNames[strings.ToLower(strings.TrimSpace(name))]
	return d, ok
}
