package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The manifest is made of LevelDB's chunks: a checksum, a length, a type and data, none across a block's border.
const (
	manifestBlock = 32 << 10
	chunkHeader   = 4 + 2 + 1
	lastChunkType = 4
)

// checkFiles finds what Pebble would take for a new database though it is none: one that lost the file which names its
// manifest. Pebble writes a log or a table only after that file.
func checkFiles(dir string, opts Options) error {
	found, err := pebble.Peek(dir, opts.fs)
	if err != nil {
		// Pebble has no error value for its own format.
		if strings.Contains(err.Error(), "unknown format major version") {
			return &NewerError{Dir: dir, Known: formatVersion}
		}
		return openError(dir, err)
	}
	if found.Exists {
		return checkManifest(dir, found.ManifestFilename, opts.fs)
	}
	names, err := opts.fs.List(dir)
	if err != nil {
		return openError(dir, err)
	}
	for _, name := range names {
		if isTable(name) || isLog(name) {
			return &DamagedError{Op: "open", Dir: dir, Err: errors.New("the marker file of the manifest is missing")}
		}
	}
	if opts.ReadOnly {
		return fmt.Errorf("open state %s: %w", dir, ErrNoState)
	}
	return nil
}

// checkManifest reads the file that lists the tables. Pebble takes its first bad chunk for the end that a crash cut
// off, and so would forget tables whose logs are gone, without a word: batches from the middle would be missing.
func checkManifest(dir, name string, fs vfs.FS) error {
	file, err := fs.Open(name)
	if err != nil {
		return openError(dir, err)
	}
	data, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return openError(dir, err)
	}
	if at := damagedChunk(data); at >= 0 {
		return &DamagedError{Op: "open", Dir: dir, Err: fmt.Errorf("%s is wrong at byte %d", filepath.Base(name), at)}
	}
	return nil
}

// damagedChunk is where the first damaged chunk begins, -1 where there is none. A last chunk that is too short, or
// zeros at the end, are what a crash leaves, and are no damage.
func damagedChunk(data []byte) int {
	for at := 0; at < len(data); {
		room := manifestBlock - at%manifestBlock
		if room < chunkHeader {
			at += room
			continue
		}
		rest := data[at:]
		if len(rest) < chunkHeader || allZero(rest) {
			return -1
		}
		end := chunkHeader + int(binary.LittleEndian.Uint16(rest[4:]))
		switch {
		case rest[6] == 0, rest[6] > lastChunkType, end > room:
			return at
		case end > len(rest):
			if hasChunk(rest) {
				return at
			}
			return -1
		case !validChunk(rest[:end]):
			return at
		}
		at += end
	}
	return -1
}

// validChunk says whether the bytes are one chunk. The checksum is a masked CRC-32C of type and data.
func validChunk(chunk []byte) bool {
	sum := crc32.Checksum(chunk[6:], crc32.MakeTable(crc32.Castagnoli))
	return binary.LittleEndian.Uint32(chunk) == bits.RotateLeft32(sum, 17)+0xa282ead8
}

// hasChunk says whether a chunk that seems cut off is complete after all and has a wrong length: it ends with the file,
// or another chunk follows.
func hasChunk(rest []byte) bool {
	if validChunk(rest) {
		return true
	}
	for at := 1; at+chunkHeader <= len(rest); at++ {
		end := at + chunkHeader + int(binary.LittleEndian.Uint16(rest[at+4:]))
		if kind := rest[at+6]; kind > 0 && kind <= lastChunkType && end <= len(rest) && validChunk(rest[at:end]) {
			return true
		}
	}
	return false
}

func allZero(data []byte) bool {
	for _, c := range data {
		if c != 0 {
			return false
		}
	}
	return true
}
