package kafka

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger passes franz-go's log on. Its info lines are this library's debug
// lines: they tell of single requests and of each rebalance step.
type logger struct {
	log     *zap.Logger
	repeats *repeats
}

func newLogger(log *zap.Logger) logger { return logger{log.Named("kgo"), newRepeats()} }

func (l logger) Level() kgo.LogLevel {
	if l.log.Core().Enabled(zapcore.DebugLevel) {
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelWarn
}

func (l logger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	at := zapcore.DebugLevel
	switch level {
	case kgo.LogLevelError, kgo.LogLevelWarn:
		at = zapcore.WarnLevel // what is an error is for whoever gets it to say
	}
	entry := l.log.Check(at, msg)
	if entry == nil {
		return
	}
	held := 0
	if at == zapcore.WarnLevel {
		var say bool
		if say, held = l.repeats.say(about(msg, keyvals)); !say {
			return
		}
	}
	fields := make([]zap.Field, 0, len(keyvals)/2)
	for i := 0; i+1 < len(keyvals); i += 2 {
		fields = append(fields, zap.Any(fmt.Sprint(keyvals[i]), printable(keyvals[i+1])))
	}
	if held > 0 {
		fields = append(fields, zap.Int("held back", held))
	}
	entry.Write(fields...)
}

// about is what makes a warning the same as another: its text and the broker.
func about(msg string, keyvals []any) string {
	for i := 0; i+1 < len(keyvals); i += 2 {
		if keyvals[i] == "addr" || keyvals[i] == "broker" {
			msg += fmt.Sprint(" ", keyvals[i+1])
		}
	}
	return msg
}

// printable keeps zap from reflecting into franz-go's types.
func printable(v any) any {
	switch v := v.(type) {
	case string, bool, int, int16, int32, int64, error:
		return v
	}
	return fmt.Sprint(v)
}
