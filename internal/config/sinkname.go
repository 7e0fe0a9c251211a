package config

// nameSinks gives a sink its kind's name where it is the only one of its kind without a name. A second one would have
// to take its place in the list as its name, and then lose its saved position when the list is reordered.
func nameSinks(sinks []Sink) {
	nameless := namelessKinds(sinks)
	for i := range sinks {
		s := &sinks[i]
		if s.Name == "" && nameless[s.Kind()] == 1 {
			s.Name = s.Kind()
		}
	}
}

func namelessKinds(sinks []Sink) map[string]int {
	count := make(map[string]int)
	for i := range sinks {
		if sinks[i].Name == "" {
			count[sinks[i].Kind()]++
		}
	}
	return count
}

// checkNames checks that each sink has a name of its own: positions and metrics are kept by it.
func checkNames(k *checker, sinks []Sink) {
	nameless := namelessKinds(sinks)
	first := make(map[string]string)
	for i := range sinks {
		s, path := &sinks[i], item("sinks", i)
		switch before := first[s.Name]; {
		case s.Name == "" && s.Kind() != "":
			k.problem(path+".name", "missing; %d sinks of kind %s have none, give each a name", nameless[s.Kind()], s.Kind())
		case s.Name == "":
			// It has no destination either, and gets a name with one.
		case before != "":
			k.problem(path+".name", "%q is the name of %s already; give each sink its own", shorten(s.Name), before)
		default:
			first[s.Name] = path
		}
	}
}
