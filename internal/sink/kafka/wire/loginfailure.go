package wire

// loginFailure is an error of our side of a login, before the broker has judged.
type loginFailure struct {
	Class  Class
	Remedy string
	Err    error
}

func (f *loginFailure) Error() string { return "log in to Kafka: " + f.Err.Error() }
func (f *loginFailure) Unwrap() error { return f.Err }
