package runtime

// choose returns the input whose next record is to be processed now, the one
// with the smallest event time, so that what a join sees does not depend on
// which partition was fetched first. While an input is empty though it is
// known to have more, or has been empty for less than maxIdle, the task waits
// and choose returns nil: that is Kafka Streams' rule of max.task.idle.ms.
//
// Records without an event time are passed over here.
func (t *task) choose() *input {
	if len(t.inputs) == 1 {
		in := t.inputs[0]
		if !t.timeHead(in) {
			return nil
		}
		return in
	}
	var first *input
	wait := false
	for _, in := range t.inputs {
		if !t.timeHead(in) {
			wait = wait || in.lagging() || t.idling(in)
			continue
		}
		if first == nil || in.head < first.head {
			first = in
		}
	}
	if wait {
		return nil
	}
	return first
}

// timeHead finds the event time of the input's next record, dropping those
// that have none. It is false if nothing is left.
func (t *task) timeHead(in *input) bool {
	for {
		r := in.peek()
		if r == nil {
			return false
		}
		if in.timed {
			return true
		}
		ms, ok := t.inst.Time(in.index, r)
		if ok {
			in.head, in.timed = ms, true
			if !in.emptySince.IsZero() { // a time has a pointer, see arena
				in.emptySince = noTime
			}
			return true
		}
		in.pop()
		t.touched = true
	}
}

// idling says that an empty input is still given time to get records.
func (t *task) idling(in *input) bool {
	idle := t.w.app.cfg.MaxIdle
	if idle <= 0 {
		return false
	}
	now := t.w.app.env.Clock.Now()
	if in.emptySince.IsZero() {
		in.emptySince = now
	}
	return now.Sub(in.emptySince) < idle
}
