package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// changes are those of Pods in the sink's file.
type changes struct {
	path   string
	offset int64
	rest   []byte // of a line that is not whole yet
	found  bool
	gaps   int
}

// skip passes over what is in the file already.
func (c *changes) skip() error {
	info, err := os.Stat(c.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("follow the changes: %w", err)
	}
	c.offset = info.Size()
	return nil
}

// came says whether a change of a Pod has come, and counts gaps.
func (c *changes) came() (bool, error) {
	file, err := os.Open(c.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("follow the changes: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, c.offset, 1<<40))
	if err != nil {
		return false, fmt.Errorf("follow the changes: %w", err)
	}
	c.offset += int64(len(text))
	text = append(c.rest, text...)
	whole := bytes.LastIndexByte(text, '\n') + 1
	c.rest, text = bytes.Clone(text[whole:]), text[:whole]
	c.gaps += bytes.Count(text, []byte(`"type":"dev.kubecdc.gap"`))
	c.found = c.found || bytes.Contains(text, []byte(`"type":"dev.kubecdc.updated","subject":"/api/v1/namespaces/default/pods/`))
	return c.found, nil
}
