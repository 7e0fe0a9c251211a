// Package batch knows Kafka's record batches of format 2 (KIP-98) as bytes: it encodes and decodes them, compresses and
// decompresses them, and knows which partition a key belongs to. It does no I/O.
//
// A batch is a header of 61 bytes and the records after it, which may be compressed:
//
//	 0 base offset       8 length of what follows      12 partition leader epoch    16 magic, 2
//	17 CRC-32C of all that follows                     21 attributes                23 last offset delta
//	27 base timestamp   35 max timestamp               43 producer id               51 producer epoch
//	53 base sequence    57 number of records           61 records
package batch
