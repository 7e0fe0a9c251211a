package transform

// Rules says what of an object goes. The paths are a subset of kubectl's JSONPath: .spec.containers[*].image,
// .metadata.annotations['a.b/c'], .status.conditions[0], with or without braces around.
//
// Drop and Keep come first, then Redact and Env.
type Rules struct {
	Drop []string // what is left out
	// Keep, where it is not empty, is all that is left in, with apiVersion, kind and the object's identity.
	Keep []string
	// Redact are values that become keyed hashes, so that a change of them is still seen. Of an object or a list all
	// values within do, and its keys stay.
	Redact []string
	// Env are patterns of environment variables, * for any text, without regard to case: in every list that is called
	// env the value of a variable with such a name is redacted, and in every map the value under such a key.
	Env []string
	// Applied says that kubectl's last-applied annotation is left in, which has an object in it as a text: the rules
	// are those of that object, too.
	Applied bool `json:",omitempty"`
	// Managed says that managedFields are left in. They have values in the names of members of lists and sets, which
	// are left out.
	Managed bool `json:",omitempty"`
}

// LastApplied is the path of the annotation in which kubectl apply keeps the object that it was given.
const LastApplied = ".metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']"

// Empty says whether the rules leave every object as it is.
func (r Rules) Empty() bool {
	return len(r.Drop) == 0 && len(r.Keep) == 0 && len(r.Redact) == 0 && len(r.Env) == 0
}

// Secrets are the rules of core/v1 Secrets, unless somebody wants them bare: neither their values nor what tools keep
// in annotations, which may be a copy of them. kubectl's copy is long, and changes with every value: it is cut.
func Secrets() Rules {
	return Rules{
		Drop:   []string{LastApplied},
		Redact: []string{".data", ".stringData", ".metadata.annotations"},
	}
}

// Join is both rules together.
func (r Rules) Join(other Rules) Rules {
	return Rules{
		Drop: append(r.Drop[:len(r.Drop):len(r.Drop)], other.Drop...), Keep: append(r.Keep[:len(r.Keep):len(r.Keep)], other.Keep...),
		Redact: append(r.Redact[:len(r.Redact):len(r.Redact)], other.Redact...), Env: append(r.Env[:len(r.Env):len(r.Env)], other.Env...),
		Applied: r.Applied || other.Applied, Managed: r.Managed || other.Managed,
	}
}

func (r Rules) hashes() bool { return len(r.Redact) > 0 || len(r.Env) > 0 || r.Applied }
