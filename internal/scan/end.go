package scan

// none is the end of what is not JSON.
const none = -1

func closing(p []byte, i int, bracket byte) int {
	if i >= len(p) || p[i] != bracket {
		return none
	}
	return i + 1
}

// space returns where the next byte is that is no white space.
func space(p []byte, i int) int {
	for i < len(p) && p[i] <= ' ' && (p[i] == ' ' || p[i] == '\n' || p[i] == '\t' || p[i] == '\r') {
		i++
	}
	return i
}

func word(p []byte, i int, want string) int {
	if len(p)-i < len(want) || string(p[i:i+len(want)]) != want {
		return none
	}
	return i + len(want)
}

// digits returns where the digits at i end, of which there must be one.
func digits(p []byte, i int) int {
	start := i
	for i < len(p) && '0' <= p[i] && p[i] <= '9' {
		i++
	}
	if i == start {
		return none
	}
	return i
}
