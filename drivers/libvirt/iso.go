package libvirt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
)

const isoSector = 2048

// isoFile is one file of the root directory.
type isoFile struct {
	name string
	data []byte
}

// writeISO makes an ISO 9660 image with a Joliet tree, files in the root only.
// Names stand as they are in both trees (the primary one bends the standard, as
// cloud images expect), so that every reader finds `meta-data`. The bytes depend
// on the input alone: there are no times in it.
func writeISO(label string, files []isoFile) ([]byte, error) {
	if label == "" || len(label) > 16 {
		return nil, errors.New("an ISO label has 1 to 16 characters")
	}
	// sectors: 16 primary, 17 Joliet, 18 end, 19..22 path tables, 23 and 24 the two
	// root directories, then the files
	const primary, joliet, tables, roots, data = 16, 17, 19, 23, 25
	var body bytes.Buffer
	entries := make([]isoEntry, 0, len(files))
	for _, f := range files {
		if len(f.name) == 0 || len(f.name) > 30 {
			return nil, fmt.Errorf("the ISO file name %q is not usable", f.name)
		}
		entries = append(entries, isoEntry{f.name, uint32(data + body.Len()/isoSector), uint32(len(f.data))})
		body.Write(f.data)
		body.Write(make([]byte, pad(len(f.data))))
	}
	var out bytes.Buffer
	out.Write(make([]byte, primary*isoSector))
	total := uint32(data + body.Len()/isoSector)
	out.Write(isoDescriptor(1, label, total, tables, roots))
	out.Write(isoDescriptor(2, label, total, tables+2, roots+1))
	out.Write(sector([]byte("\xffCD001\x01")))
	for _, root := range []uint32{roots, roots + 1} { // little and big end, of each tree
		out.Write(sector(pathTable(binary.LittleEndian, root)))
		out.Write(sector(pathTable(binary.BigEndian, root)))
	}
	for i, encode := range []func(string) []byte{func(s string) []byte { return []byte(s + ";1") }, ucs2} {
		dir := isoDirectory(uint32(roots+i), entries, encode)
		if len(dir) > isoSector {
			return nil, errors.New("too many files for an ISO of one directory sector")
		}
		out.Write(sector(dir))
	}
	out.Write(body.Bytes())
	return out.Bytes(), nil
}

type isoEntry struct {
	name      string
	at, bytes uint32
}

func pad(n int) int { return (isoSector - n%isoSector) % isoSector }

func sector(b []byte) []byte { return append(b, make([]byte, pad(len(b)))...) }

func ucs2(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.BigEndian.AppendUint16(b, u)
	}
	return b
}

// both32 and both16 are ISO's way to write a number for either kind of machine.
func both32(b []byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, n), n)
}

func both16(b []byte, n uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, n), n)
}

func isoDescriptor(kind byte, label string, total, table, root uint32) []byte {
	text := func(s string, n int) []byte { // space-padded, in the encoding of the tree
		raw, fill := []byte(s), []byte(" ")
		if kind == 2 {
			raw, fill = ucs2(s), []byte{0, ' '}
		}
		for len(raw)+len(fill) <= n {
			raw = append(raw, fill...)
		}
		return append(raw, make([]byte, n-len(raw))...)
	}
	b := append([]byte{kind}, "CD001\x01\x00"...)
	b = append(b, text("", 32)...)
	b = append(b, text(label, 32)...)
	b = append(b, make([]byte, 8)...)
	b = both32(b, total)
	escapes := make([]byte, 32)
	if kind == 2 {
		copy(escapes, "%/E") // Joliet level 3
	}
	b = append(b, escapes...)
	b = both16(both16(b, 1), 1)
	b = both16(b, isoSector)
	b = both32(b, uint32(len(pathTable(binary.LittleEndian, root))))
	b = binary.LittleEndian.AppendUint32(b, table)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, table+1)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = append(b, isoRecord([]byte{0}, root, isoSector, true)...)
	b = append(b, text("", 128)...)    // volume set
	b = append(b, text("", 128)...)    // publisher
	b = append(b, text("", 128)...)    // preparer
	b = append(b, text("HCP", 128)...) // application
	b = append(b, text("", 37*3)...)
	none := append(bytes.Repeat([]byte("0"), 16), 0)
	for range 4 {
		b = append(b, none...)
	}
	return sector(append(b, 1))
}

func pathTable(order binary.AppendByteOrder, root uint32) []byte {
	b := []byte{1, 0}
	b = order.AppendUint32(b, root)
	b = order.AppendUint16(b, 1)
	return append(b, 0, 0)
}

func isoDirectory(at uint32, entries []isoEntry, encode func(string) []byte) []byte {
	b := isoRecord([]byte{0}, at, isoSector, true)
	b = append(b, isoRecord([]byte{1}, at, isoSector, true)...)
	for _, e := range entries {
		b = append(b, isoRecord(encode(e.name), e.at, e.bytes, false)...)
	}
	return b
}

func isoRecord(name []byte, at, size uint32, dir bool) []byte {
	b := both32([]byte{0, 0}, at)
	b = both32(b, size)
	b = append(b, 100, 1, 1, 0, 0, 0, 0) // 2000-01-01, always
	if dir {
		b = append(b, 2)
	} else {
		b = append(b, 0)
	}
	b = append(b, 0, 0)
	b = both16(b, 1)
	b = append(b, byte(len(name)))
	b = append(b, name...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	b[0] = byte(len(b))
	return b
}
