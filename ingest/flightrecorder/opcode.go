package flightrecorder

// The opcodes of Python's pickle protocols 0 to 5 that build plain data, by the
// names of Python's pickletools.py.
const (
	opMark            = '('
	opStop            = '.'
	opPop             = '0'
	opPopMark         = '1'
	opDup             = '2'
	opFloat           = 'F'
	opInt             = 'I'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opLong            = 'L'
	opBinInt2         = 'M'
	opNone            = 'N'
	opString          = 'S'
	opBinString       = 'T'
	opShortBinString  = 'U'
	opUnicode         = 'V'
	opBinUnicode      = 'X'
	opAppend          = 'a'
	opDict            = 'd'
	opEmptyDict       = '}'
	opAppends         = 'e'
	opGet             = 'g'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opList            = 'l'
	opEmptyList       = ']'
	opPut             = 'p'
	opBinPut          = 'q'
	opLongBinPut      = 'r'
	opSetItem         = 's'
	opTuple           = 't'
	opEmptyTuple      = ')'
	opSetItems        = 'u'
	opBinFloat        = 'G'
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opProto           = 0x80
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opBinBytes8       = 0x8e
	opMemoize         = 0x94
	opFrame           = 0x95
	opByteArray8      = 0x96
)

// refused names the opcodes that exist and are never carried out: those that
// look up code, call it or build objects, those that ask the reader for
// something from outside, and sets, which no dump has.
var refused = map[byte]string{
	'c':  "GLOBAL",
	'R':  "REDUCE",
	'b':  "BUILD",
	'i':  "INST",
	'o':  "OBJ",
	0x81: "NEWOBJ",
	0x92: "NEWOBJ_EX",
	0x93: "STACK_GLOBAL",
	0x82: "EXT1",
	0x83: "EXT2",
	0x84: "EXT4",
	'P':  "PERSID",
	'Q':  "BINPERSID",
	0x97: "NEXT_BUFFER",
	0x98: "READONLY_BUFFER",
	0x8f: "EMPTY_SET",
	0x90: "ADDITEMS",
	0x91: "FROZENSET",
}

// maxProtocol is the newest protocol there is.
const maxProtocol = 5
