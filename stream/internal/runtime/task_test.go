package runtime

import (
	"errors"
	"testing"
)

// Something that fails may have sent, before that, what does not fit its
// topic. Both are taken back, and what comes next is not blamed for either.
func TestWhatIsTooLargeIsTakenBackWithWhatFailed(t *testing.T) {
	task := NewTask(TaskConfig{Partitions: func(string) int32 { return 1 }})
	task.sinks.max = func(string) int { return 2000 }
	out, err := task.Sink("out")
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("no")
	mark := task.Savepoint()
	task.Stage(out, 0, nil, make([]byte, 100), 0, nil)
	task.Stage(out, 0, nil, make([]byte, 5000), 0, nil)
	if err := task.Settle(mark, why); !errors.Is(err, why) {
		t.Errorf("it failed with %v, want %v", err, why)
	}
	if n := len(task.Staged()); n != 0 {
		t.Errorf("%d records are left", n)
	}
	if err := task.Settle(task.Savepoint(), nil); err != nil {
		t.Errorf("the next one is blamed: %v", err)
	}
}

func TestAnInstanceHearsThatEffectsAreTakenBack(t *testing.T) {
	task := NewTask(TaskConfig{})
	heard := 0
	task.OnUndo(func() { heard++ })
	first := task.Savepoint()
	if err := task.Settle(first, nil); err != nil || heard != 0 {
		t.Errorf("it heard %d times of nothing (%v)", heard, err)
	}
	mark := task.Marks()
	if err := task.Settle(task.Savepoint(), errors.New("no")); err == nil || heard != 1 {
		t.Errorf("it heard %d times of a failure (%v)", heard, err)
	}
	if got := task.Marks(); got != mark+1 {
		t.Errorf("one savepoint raised the marks from %d to %d", mark, got)
	}
}

func TestTheBytesOfWhatIsStagedAreKnown(t *testing.T) {
	task := NewTask(TaskConfig{Partitions: func(string) int32 { return 1 }})
	out, err := task.Sink("out")
	if err != nil {
		t.Fatal(err)
	}
	task.Stage(out, 0, make([]byte, 3), make([]byte, 100), 0, nil)
	mark := task.Savepoint()
	task.Stage(out, 0, nil, make([]byte, 1000), 0, nil)
	if task.stagedBytes != 1103 {
		t.Errorf("%d bytes, want 1103", task.stagedBytes)
	}
	_ = task.Settle(mark, errors.New("no"))
	if task.stagedBytes != 103 {
		t.Errorf("after an undo %d bytes, want 103", task.stagedBytes)
	}
	if task.Take(); task.stagedBytes != 0 {
		t.Errorf("when they are taken %d bytes", task.stagedBytes)
	}
}
