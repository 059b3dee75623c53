package stream_test

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream"
)

// The golden shapes of processors' stores of windows, sessions and versions.

func init() {
	maps.Copy(shapes, map[string]func(*stream.Builder){
		"window-commands":            shapeWindowCommands,
		"window-duplicates-commands": shapeWindowDuplicatesCommands,
		"session-commands":           shapeSessionCommands,
		"versioned-commands":         shapeVersionedCommands,
		"dedup-20":                   shapeDedup20,
		"kv-forgets":                 shapeKvForgets, // there is no golden trace of it
	})
}

func millis(s string) time.Time { n, _ := strconv.ParseInt(s, 10, 64); return at(n) }

func shapeWindowCommands(b *stream.Builder) {
	windowCommands(b, b.WindowStore("w", codec.String, codec.String, 10*ms, 50*ms))
}

func shapeWindowDuplicatesCommands(b *stream.Builder) {
	windowCommands(b, b.WindowStore("w", codec.String, codec.String, 10*ms, 50*ms).KeepDuplicates())
}

func windowCommands(b *stream.Builder, w stream.WindowStore[string, string]) {
	start := func(k state.WindowKey[string]) string { return strconv.FormatInt(k.Start.UnixMilli(), 10) }
	keyAtStart := func(k state.WindowKey[string]) string { return k.Key + "@" + start(k) }
	b.Stream(in).ProcessValues(answer(func(c *valueContext, r rec) (string, error) {
		w := w.In(c)
		name, arg := command(r.Value)
		switch name {
		case "put":
			return "ok", w.Put(r.Key, r.Time, arg[0])
		case "del":
			return "ok", w.Delete(r.Key, r.Time)
		case "at":
			v, ok, err := w.Get(r.Key, millis(arg[0]))
			return orNull(v, ok), err
		case "fetch":
			return show(w.Fetch(r.Key, millis(arg[0]), millis(arg[1])), start)
		case "bfetch":
			return show(w.Backward().Fetch(r.Key, millis(arg[0]), millis(arg[1])), start)
		case "keys":
			return show(w.FetchRange(arg[0], arg[1], millis(arg[2]), millis(arg[3])), keyAtStart)
		case "fetchall":
			return show(w.FetchAll(millis(arg[0]), millis(arg[1])), keyAtStart)
		case "bfetchall":
			return show(w.Backward().FetchAll(millis(arg[0]), millis(arg[1])), keyAtStart)
		case "all":
			return show(w.All(), keyAtStart)
		}
		return "", fmt.Errorf("unknown command %q", name)
	}), stream.Uses(w)).To(out)
}

func shapeSessionCommands(b *stream.Builder) {
	s := b.SessionStore("s", codec.String, codec.String, 50*ms)
	print := func(k state.SessionKey[string]) string {
		return fmt.Sprintf("%s[%d,%d]", k.Key, k.Start.UnixMilli(), k.End.UnixMilli())
	}
	b.Stream(in).ProcessValues(answer(func(c *valueContext, r rec) (string, error) {
		s := s.In(c)
		name, arg := command(r.Value)
		session := state.SessionKey[string]{Key: r.Key, Start: millis(arg[0]), End: millis(arg[1])}
		switch name {
		case "put":
			return "ok", s.Put(session, arg[2])
		case "rem":
			return "ok", s.Delete(session)
		case "at":
			v, ok, err := s.Get(session)
			return orNull(v, ok), err
		case "find":
			return show(s.Overlapping(r.Key, millis(arg[0]), millis(arg[1])), print)
		case "bfind":
			return show(s.Backward().Overlapping(r.Key, millis(arg[0]), millis(arg[1])), print)
		case "fetch":
			return show(s.Fetch(r.Key), print)
		case "keys":
			return show(s.FetchRange(arg[0], arg[1]), print)
		}
		return "", fmt.Errorf("unknown command %q", name)
	}), stream.Uses(s)).To(out)
}

func shapeVersionedCommands(b *stream.Builder) {
	v := b.VersionedStore("v", codec.String, codec.String, 50*ms)
	code := func(to time.Time, ok bool, err error) (string, error) {
		switch {
		case !ok:
			return "-9223372036854775808", err
		case to.IsZero():
			return "-1", err
		}
		return strconv.FormatInt(to.UnixMilli(), 10), err
	}
	print := func(v state.Version[string], ok bool, err error) (string, error) {
		return orNull(fmt.Sprintf("%s@%d..", v.Value, v.From.UnixMilli()), ok), err
	}
	b.Stream(in).ProcessValues(answer(func(c *valueContext, r rec) (string, error) {
		v := v.In(c)
		name, arg := command(r.Value)
		switch name {
		case "put":
			return code(v.Put(r.Key, r.Time, arg[0]))
		case "nul":
			return code(v.Delete(r.Key, r.Time))
		case "del":
			was, err := print(v.GetAsOf(r.Key, r.Time))
			if err != nil {
				return "", err
			}
			_, _, err = v.Delete(r.Key, r.Time)
			return was, err
		case "get":
			return print(v.Get(r.Key))
		case "asof":
			return print(v.GetAsOf(r.Key, millis(arg[0])))
		}
		return "", fmt.Errorf("unknown command %q", name)
	}), stream.Uses(v)).To(out)
}

// shapeDedup20 takes records before and after as duplicates.
func shapeKvForgets(b *stream.Builder) {
	kv := b.Store("kv", codec.String, codec.String, stream.TTL(30*ms), stream.MaxKeys(3))
	b.Stream(in).ProcessValues(answer(func(c *valueContext, r rec) (string, error) {
		if err := kv.In(c).Put(r.Key, r.Value); err != nil {
			return "", err
		}
		return show(kv.In(c).All(), func(k string) string { return k })
	}), stream.Uses(kv)).To(out)
}

func shapeDedup20(b *stream.Builder) {
	seen := b.WindowStore("seen", codec.String, codec.String, 20*ms, 100*ms)
	b.Stream(in).
		ProcessValues(func(c *stream.ValueContext[string], r rec) error {
			if r.NoKey {
				return nil
			}
			seen := seen.In(c)
			for _, err := range seen.Fetch(r.Value, r.Time.Add(-20*ms), r.Time.Add(20*ms)) {
				return err
			}
			if err := seen.Put(r.Value, r.Time, r.Key); err != nil {
				return err
			}
			return c.Emit(r.Value)
		}, stream.Uses(seen)).
		To(out)
}
