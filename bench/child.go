package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// runChild is main of a child process. It ends when it is done, at SIGTERM, or
// when its driver has died.
func runChild(argument string) error {
	var s spec
	if err := json.Unmarshal([]byte(argument), &s); err != nil {
		return fmt.Errorf("-child is for the driver's own use: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := &events{out: os.Stdout}
	questions, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, os.Stdin)
		if err == nil {
			err = errors.New("the driver is gone")
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}()
	switch s.Kind {
	case kindApp:
		return runApp(ctx, s, out, questions)
	case kindFloor:
		return runFloor(ctx, s, out)
	case kindFloorTxn:
		return runFloorTxn(ctx, s, out)
	case kindFloorSession:
		return runFloorSession(ctx, s, out)
	case kindPeer:
		return runPeer(ctx, s, out)
	case kindBroker:
		return runBroker(ctx, out)
	}
	return fmt.Errorf("there is no kind of child %q", s.Kind)
}
