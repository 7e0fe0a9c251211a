package control

import (
	"context"
	"net/http"
)

// Running is what a running exporter says of itself on /statusz, as far as others need it.
type Running struct {
	Sinks map[string]RunningSink `json:"sinks"`
}

// RunningSink is one of its sinks.
type RunningSink struct {
	State   string `json:"state"`
	Address string `json:"address"` // "" of an earlier version
}

// Running asks what the exporter does.
func (c *Client) Running(ctx context.Context) (*Running, error) {
	answer := new(Running)
	return answer, c.ask(ctx, http.MethodGet, "/statusz", nil, answer)
}
