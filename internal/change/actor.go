package change

// Actors is the stream of the records that say who asked for a change. No source reads it, and it has no position: an
// API server's audit sends a batch again until it is taken, and never after that. No resource can have its name: the
// core group has no custom resources.
//
// The records' keys are those of the objects. UID is a hash of what is told, ResourceVersion that of the state, ""
// of a delete, and Object has the attributes and the data of the CloudEvent. Each is for one Sink.
func Actors() Stream { return Stream{Resource: Resource{Version: "v1", Name: "actors", Kind: "Actor"}} }

// IsActors says whether the stream is that one.
func (s *Stream) IsActors() bool { return s.Resource.Name == "actors" && s.Resource.Group == "" }
