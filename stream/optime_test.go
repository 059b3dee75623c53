package stream

import (
	"errors"
	"testing"

	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

func TestAnOperatorsTimeGoesBackWithTheRecordThatFailed(t *testing.T) {
	task := runtime.NewTask(runtime.TaskConfig{})
	in := &instance{}
	task.OnUndo(in.undone)
	now := (&opener{task: task, in: in}).operatorTime(&graph.Node{Name: "op"})
	process := func(ms int64, err error) {
		t.Helper()
		mark := task.Savepoint()
		now.observe(ms)
		now.observe(ms + 1)
		if got := task.Settle(mark, err); !errors.Is(got, err) {
			t.Fatal(got)
		}
	}
	no := errors.New("no")
	process(5, no)
	if now.now != runtime.NoTime {
		t.Errorf("time %d after a first record that failed", now.now)
	}
	process(10, nil)
	process(100, no)
	process(20, nil)
	process(15, no) // moves nothing, and takes nothing back
	if now.now != 21 {
		t.Errorf("time %d, want that of the last record that did not fail, 21", now.now)
	}
}
