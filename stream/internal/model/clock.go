package model

import (
	"context"
	"time"
)

// clock is seam.Clock in virtual time.
type clock struct{ w *World }

func (c clock) Now() time.Time { return c.w.Now() }

func (c clock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.w.pause(ctx, d, false, "sleep")
	return ctx.Err()
}

// signal is seam.Signal.
type signal struct {
	w      *World
	set    bool
	waiter *co
}

func (s *signal) Notify() {
	s.set = true
	if s.waiter != nil {
		s.w.rouse(s.waiter)
	}
}

func (s *signal) Wait(ctx context.Context, d time.Duration) {
	if !s.set && ctx.Err() == nil {
		s.waiter = s.w.self()
		s.w.pause(ctx, d, false, "signal")
		s.waiter = nil
	}
	s.set = false
}
