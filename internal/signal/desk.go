package signal

import "errors"

// ErrEnough is what those who follow signals take no more with until the next pause.
var ErrEnough = errors.New("no more signals are taken for the moment")
