package batch

import "encoding/binary"

// Partition is where Java's default partitioner puts a record with the key, of n partitions
// (BuiltInPartitioner.partitionForKey): consumers that join topics by key rely on it.
func Partition(key []byte, n int) int32 {
	return int32(int(murmur2(key)&0x7fffffff) % n)
}

// murmur2 is Utils.murmur2 of Kafka, with Kafka's seed.
func murmur2(data []byte) uint32 {
	const m = 0x5bd1e995
	h := 0x9747b28c ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := binary.LittleEndian.Uint32(data) * m
		h = h*m ^ (k^k>>24)*m
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(data[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
