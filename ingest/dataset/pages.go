package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/klauspost/compress/zstd"
)

// checkPages walks the pages of a column chunk before Arrow reads them: it sets
// aside what a page's header says and decompresses to the end whatever comes
// out, so that a few bytes could fill the memory.
func checkPages(chunk []byte, codec compress.Compression) error {
	if codec != compress.Codecs.Zstd && codec != compress.Codecs.Uncompressed {
		return fmt.Errorf("compressed with %s, which datasets are not", codec)
	}
	c := cursor{b: chunk}
	for len(c.b) > 0 {
		plain, packed, err := c.pageHeader()
		switch {
		case err != nil:
			return err
		case plain < 0 || plain > maxPage:
			return fmt.Errorf("a page claims %d bytes", plain)
		case packed < 0 || packed > int64(len(c.b)):
			return fmt.Errorf("a page of %d bytes has %d", packed, len(c.b))
		}
		if codec == compress.Codecs.Zstd && packed > 0 {
			if err := checkFrame(c.b[:packed], plain); err != nil {
				return err
			}
		}
		c.b = c.b[packed:]
	}
	return nil
}

// checkFrame tells whether data is one frame of zstd that gives so many bytes:
// the decoder holds frames to what they announce, but takes several. Frames of
// less than 256 bytes announce nothing; they have one block, which gives no more
// than 128 KiB.
func checkFrame(data []byte, plain int64) error {
	var h zstd.Header
	if err := h.Decode(data); err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	if h.Skippable || h.HasFCS && h.FrameContentSize != uint64(plain) {
		return fmt.Errorf("a page of %d bytes is compressed as one of %d", plain, h.FrameContentSize)
	}
	rest := data[h.HeaderSize:]
	for last := false; !last; {
		if len(rest) < 3 {
			return errCut
		}
		block := uint32(rest[0]) | uint32(rest[1])<<8 | uint32(rest[2])<<16
		last = block&1 != 0
		if !last && !h.HasFCS {
			return errors.New("a page does not say how large it is")
		}
		size := int(block >> 3)
		if block>>1&3 == 1 { // one byte, repeated
			size = 1
		}
		if size > len(rest)-3 {
			return errCut
		}
		rest = rest[3+size:]
	}
	if h.HasCheckSum {
		if len(rest) < 4 {
			return errCut
		}
		rest = rest[4:]
	}
	if len(rest) > 0 {
		return errors.New("a page has bytes after its end")
	}
	return nil
}

var errCut = errors.New("a page is cut off")

// cursor reads Thrift's compact encoding, which headers of pages have.
type cursor struct{ b []byte }

// Fields of a page header.
const (
	plainField  = 2 // uncompressed_page_size
	packedField = 3 // compressed_page_size
)

// pageHeader skips a header and returns the sizes it has.
func (c *cursor) pageHeader() (plain, packed int64, err error) {
	plain, packed = -1, -1
	err = c.fields(0, func(id int64, kind byte) error {
		if kind != thriftI32 || id != plainField && id != packedField {
			return c.skip(kind, 0)
		}
		v, err := c.integer()
		if id == plainField {
			plain = v
		} else {
			packed = v
		}
		return err
	})
	return plain, packed, err
}

// Types of the compact encoding.
const (
	thriftTrue, thriftFalse, thriftByte           = 1, 2, 3
	thriftI16, thriftI32, thriftI64, thriftDouble = 4, 5, 6, 7
	thriftBinary, thriftStruct                    = 8, 12
)

// maxDepth is how deep structures may be nested; those of pages have 3 levels.
const maxDepth = 8

// fields visits the fields of a structure; visit takes the value.
func (c *cursor) fields(depth int, visit func(id int64, kind byte) error) error {
	if depth > maxDepth {
		return errors.New("a page header is nested too deep")
	}
	for id := int64(0); ; {
		b, err := c.byte()
		if err != nil || b == 0 {
			return err
		}
		if delta := int64(b >> 4); delta > 0 {
			id += delta
		} else if id, err = c.integer(); err != nil {
			return err
		}
		if err := visit(id, b&0xf); err != nil {
			return err
		}
	}
}

// skip passes over a value. Headers have no lists, sets or maps.
func (c *cursor) skip(kind byte, depth int) error {
	switch kind {
	case thriftTrue, thriftFalse: // the type is the value
		return nil
	case thriftByte:
		return c.pass(1)
	case thriftI16, thriftI32, thriftI64:
		_, err := c.integer()
		return err
	case thriftDouble:
		return c.pass(8)
	case thriftBinary:
		n, err := c.length()
		if err != nil {
			return err
		}
		return c.pass(n)
	case thriftStruct:
		return c.fields(depth+1, func(_ int64, kind byte) error { return c.skip(kind, depth+1) })
	}
	return fmt.Errorf("a page header has a value of type %d", kind)
}

func (c *cursor) byte() (byte, error) {
	if len(c.b) == 0 {
		return 0, errCut
	}
	b := c.b[0]
	c.b = c.b[1:]
	return b, nil
}

func (c *cursor) pass(n uint64) error {
	if n > uint64(len(c.b)) {
		return errCut
	}
	c.b = c.b[n:]
	return nil
}

func (c *cursor) length() (uint64, error) {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		return 0, errCut
	}
	c.b = c.b[n:]
	return v, nil
}

// integer reads a signed integer: zigzag, as encoding/binary has it.
func (c *cursor) integer() (int64, error) {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		return 0, errCut
	}
	c.b = c.b[n:]
	return v, nil
}
