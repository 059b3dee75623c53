package seamtest

import (
	"time"
)

var waiting = suite{
	{"Sleep takes its time, and ends with its context", func(c *kase) {
		begin := c.Clock.Now()
		c.ok(c.Clock.Sleep(c.ctx, 20*time.Millisecond))
		if took := c.Clock.Now().Sub(begin); took < 20*time.Millisecond {
			c.Fatalf("slept %v", took)
		}
		ctx, cancel := withCancel(c)
		c.Go("canceler", cancel)
		if err := c.Clock.Sleep(ctx, patience); err == nil {
			c.Fatal("no error")
		}
		if took := c.Clock.Now().Sub(begin); took > patience/2 {
			c.Fatalf("slept %v", took)
		}
	}},
	{"a Notify with nobody waiting is kept, once", func(c *kase) {
		s := c.Signal()
		s.Notify()
		s.Notify()
		begin := c.Clock.Now()
		s.Wait(c.ctx, patience)
		if took := c.Clock.Now().Sub(begin); took > patience/2 {
			c.Fatalf("waited %v", took)
		}
		begin = c.Clock.Now()
		s.Wait(c.ctx, 20*time.Millisecond)
		if took := c.Clock.Now().Sub(begin); took < 20*time.Millisecond {
			c.Fatalf("the second Wait took %v", took)
		}
	}},
	{"a Notify wakes who waits, and so does the end of a context", func(c *kase) {
		s := c.Signal()
		begin := c.Clock.Now()
		c.Go("notifier", s.Notify)
		s.Wait(c.ctx, patience)
		ctx, cancel := withCancel(c)
		c.Go("canceler", cancel)
		s.Wait(ctx, patience)
		if took := c.Clock.Now().Sub(begin); took > patience/2 {
			c.Fatalf("waited %v", took)
		}
	}},
	{"random numbers differ", func(c *kase) {
		if a, b := c.Rand(), c.Rand(); a == b {
			c.Fatal("two are the same")
		}
	}},
}
