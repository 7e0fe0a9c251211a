package signal

// Message is what lies in the log of what is asked. It is valid until its reader goes on.
type Message struct {
	Key, Value []byte
	Place      string        // where it lies, "kubecdc-signals-0-12": an id for one that has none
	Offset     int64         // the same within its partition
	After      func() string // the place after it, to be saved
	Old        string        // why it is too old to be followed; "" is that it is not
	Broken     error         // why nothing of it can be read: it has neither key nor value then
}
