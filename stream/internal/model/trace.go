package model

import (
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Trace is what happened, a line each: virtual ms, who, what. It is empty
// without Config.Trace.
func (w *World) Trace() []string { return w.lines }

func (w *World) logf(who, format string, args ...any) {
	if w.cfg.Trace {
		w.lines = append(w.lines, fmt.Sprintf("%10.3f %s ", float64(w.broker.now)/1e6, who)+fmt.Sprintf(format, args...))
	}
}

// logger writes what a process logs into the trace.
func (w *World) logger(who string) *zap.Logger {
	if !w.cfg.Trace {
		return zap.NewNop()
	}
	return zap.New(&traceCore{w: w, who: who})
}

type traceCore struct {
	w      *World
	who    string
	fields []zapcore.Field
}

func (t *traceCore) Enabled(zapcore.Level) bool { return true }
func (t *traceCore) Sync() error                { return nil }

func (t *traceCore) With(fields []zapcore.Field) zapcore.Core {
	return &traceCore{t.w, t.who, append(slices.Clip(t.fields), fields...)}
}

func (t *traceCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(e, t)
}

func (t *traceCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Level, e.Message)
	for _, f := range append(slices.Clip(t.fields), fields...) {
		f.AddTo(enc)
		fmt.Fprintf(&b, " %s=%v", f.Key, enc.Fields[f.Key])
	}
	t.w.logf(t.who, "%s", b.String())
	return nil
}
