package kafka

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestASignalKeepsOneNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := make(signal, 1)
		start := time.Now()
		s.Notify()
		s.Notify()
		s.Wait(context.Background(), time.Hour)
		if time.Since(start) != 0 {
			t.Fatal("the notification was not kept")
		}
		s.Wait(context.Background(), time.Hour)
		if time.Since(start) != time.Hour {
			t.Fatal("two were kept")
		}
		go func() { time.Sleep(time.Minute); s.Notify() }() //nolint:forbidigo // the bubble's time
		s.Wait(context.Background(), time.Hour)
		if time.Since(start) != time.Hour+time.Minute {
			t.Fatal("it did not wake")
		}
		soon, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Wait(soon, time.Hour)
		if time.Since(start) != time.Hour+time.Minute+time.Second {
			t.Fatal("the context's end did not wake")
		}
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := (clock{}).Sleep(soon, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		start := time.Now()
		if err := (clock{}).Sleep(context.Background(), time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Fatal(err)
		}
	})
}
