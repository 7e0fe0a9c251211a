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

// came says whether a change of a Pod has come.
func (c *changes) came() (bool, error) {
	if c.found {
		return true, nil
	}
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
	c.rest = bytes.Clone(text[bytes.LastIndexByte(text, '\n')+1:])
	c.found = bytes.Contains(text, []byte(`"type":"dev.kubecdc.updated","subject":"/api/v1/namespaces/default/pods/`))
	return c.found, nil
}
