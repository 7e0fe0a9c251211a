package typed

import (
	"fmt"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// restorer puts an object together again, of its columns and of its rest.
type restorer struct {
	out []byte
	err error // the first
}

// fail keeps the first error.
func (d *restorer) fail(format string, values ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, values...)
	}
}

func (d *restorer) comma(start int) {
	if len(d.out) > start {
		d.out = append(d.out, ',')
	}
}

// parts are what the rest has of one value: members in their order, of which some are taken.
type parts struct {
	all   []part
	named map[string]int // where the last of a name is
	taken int
}

type part struct {
	key   []byte // nil where it is taken
	value scan.Cursor
}

// members are none where there is no rest.
func (d *restorer) members(left *scan.Cursor) *parts {
	if left == nil {
		return nil
	}
	p := &parts{named: map[string]int{}}
	if left.Byte() != '{' {
		d.fail("%s is no object", RestName)
		return nil
	}
	for c := inside(*left); c.Next('}'); c.Skip() {
		key := c.Key()
		p.named[string(scan.Text(key))] = len(p.all)
		p.all = append(p.all, part{key, c})
	}
	return p
}

// take is what there is of a name, once.
func (p *parts) take(name string) *scan.Cursor {
	if p == nil {
		return nil
	}
	i, found := p.named[name]
	if !found || p.all[i].key == nil {
		return nil
	}
	p.all[i].key = nil
	p.taken++
	return &p.all[i].value
}

func (p *parts) left() int {
	if p == nil {
		return 0
	}
	return len(p.all) - p.taken
}

// others writes what was not taken, as it is.
func (d *restorer) others(p *parts, start int) {
	if p.left() == 0 || d.err != nil {
		return
	}
	for i := range p.all {
		if one := &p.all[i]; one.key != nil {
			d.comma(start)
			d.out = append(append(d.out, one.key...), ':')
			d.out = append(d.out, one.value.Skip()...)
		}
	}
}
