// Package slab hands out memory for objects by carving up larger pieces: a piece of its own for each object costs a
// third of the throughput. Nothing is ever taken back; the garbage collector frees a piece when its last object is
// gone.
package slab
