package embedded

// Options configures a server.
type Options struct {
	StoreDir string // where the streams are; needed
	Host     string // "" is 127.0.0.1
	Port     int    // 0 is any that is free
	// MaxPayload is the size in bytes of the largest message that the server takes; 0 is its own default, 1 MiB.
	MaxPayload int32
}
