//go:build !linux

package main

import "syscall"

// endsWithParent has no counterpart here: a child outlives a program that is killed.
func endsWithParent() *syscall.SysProcAttr { return nil }
