package limit

import (
	"context"
	"errors"
	"time"
)

// Model is the reference implementation in memory.
type Model struct {
	now func() time.Time
}

// NewModel returns an empty Model; now is its clock, nil is time.Now.
func NewModel(now func() time.Time) *Model { return &Model{now: now} }

// Decide implements Store.
func (m *Model) Decide(context.Context, []Counter) (Decision, error) {
	return Decision{}, errors.New("pending")
}
