package change

import "strings"

// MaxShown is how many bytes of a text people are shown, in a line of the log or an error of a status. The text may
// have a name in it, and whoever may create a Role chooses one as long as etcd takes.
const MaxShown = 8 << 10

// Shown is the text as people are shown it: of one of more than so many bytes the beginning, the hash that a note has,
// and the end.
func Shown(text string, most int) string {
	if len(text) <= most {
		return text
	}
	hash := "..." + hashOf(text) + "..."
	end := most / 4
	begin := most - end - len(hash)
	return strings.ToValidUTF8(text[:begin], "") + hash + strings.ToValidUTF8(text[len(text)-end:], "")
}

// Shown is the key as people are shown it.
func (k Key) Shown() string {
	k.Name = Shown(k.Name, MaxNamed)
	return k.String()
}
