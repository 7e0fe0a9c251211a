package fifo

import "time"

// Levels are how much was pushed to a backlog and is not acknowledged.
type Levels struct {
	Records                  int   // in memory
	Bytes                    int   // of the queue alone
	SpoolRecords, SpoolBytes int64 // on disk; the bytes are those of the disk
	// when the oldest record was received, about where it is on disk; zero where there is none
	Oldest time.Time
}
