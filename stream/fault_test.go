package stream

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/semelstream/semel/stream/internal/runtime"
)

func TestAFaultIsFoundInWhatRunReturns(t *testing.T) {
	inner := &runtime.Fault{Code: "SEMEL-X", What: "it broke", Where: "here", Err: io.ErrUnexpectedEOF, Do: "mend it"}
	err := publicError("app", fmt.Errorf("starting: %w", inner))
	f, ok := errors.AsType[*Fault](err)
	if !ok {
		t.Fatalf("no Fault in %T", err)
	}
	if f.Code != "SEMEL-X" || f.What != "it broke" || f.Where != "here" || f.Do != "mend it" || f.Err != io.ErrUnexpectedEOF {
		t.Errorf("got %+v", f)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is not in it")
	}
	if want := "starting: SEMEL-X: it broke (here): unexpected EOF; mend it"; err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestAnIncompatibleFaultIsBoth(t *testing.T) {
	err := publicError("app", &runtime.Fault{Code: "SEMEL-X", What: "it broke", Err: runtime.ErrIncompatible})
	if _, ok := errors.AsType[*Fault](err); !ok || !errors.Is(err, ErrIncompatible) {
		t.Errorf("got %v", err)
	}
}

func TestAFailureSaysItsCode(t *testing.T) {
	for op, want := range map[Op]string{OpDecode: "SEMEL-DECODE", OpTimer: "SEMEL-TIMER", OpProduce: "SEMEL-PRODUCE"} {
		if got := (&Failure{Op: op, Err: io.EOF}).Code(); got != want {
			t.Errorf("%s has the code %q, want %q", op, got, want)
		}
	}
	inner := &runtime.Fault{Code: "SEMEL-TOO-LARGE"}
	if got := (&Failure{Op: OpProduce, Err: inner}).Code(); got != inner.Code {
		t.Errorf("got %q, want that of the cause", got)
	}
}
