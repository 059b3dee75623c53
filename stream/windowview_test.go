package stream

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semelstream/semel/state"
)

// viewed is a view of the stores of a rig.
func viewed[V any](r *rig, store string, sessions bool) WindowView[string, V] {
	return WindowView[string, V]{store, sessions, r.top.shapes[store], func() (dbs []*state.DB, _ error) {
		for _, task := range r.sorted() {
			if task.db.Part(store) != nil {
				dbs = append(dbs, task.db)
			}
		}
		return dbs, nil
	}}
}

func viewText[V any](rows state.Rows[Windowed[string], V]) (all []string) {
	for e, err := range rows {
		all = append(all, fmt.Sprintf("%s=%v@%d %v", e.Key.short(), e.Value, e.Time.UnixMilli(), err))
	}
	return all
}

func sameTexts(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%q, want\n\t%q", got, want)
	}
}

func TestViewOfWindowsSeesWhatIsCommitted(t *testing.T) {
	r := newRigOf(t, countIn(Hopping(10*ms, 5*ms, 10*ms)), map[string]int32{"texts": 2, "windows": 2})
	a, b := inPartition(0), inPartition(1)
	sendAt(r, a, 7, 12)
	sendAt(r, b, 3)
	r.commit()
	sendAt(r, a, 8)
	v := viewed[int64](r, "n", false)
	sameTexts(t, viewText(v.FetchAll(time.UnixMilli(0), time.UnixMilli(5))), a+"[0,10)=1@7 <nil>", a+"[5,15)=2@12 <nil>", b+"[0,10)=1@3 <nil>")
	sameTexts(t, viewText(v.Fetch(a, time.UnixMicro(1), time.UnixMilli(100))), a+"[5,15)=2@12 <nil>", a+"[10,20)=1@12 <nil>")
	if n, ok, err := v.Get(b, time.UnixMilli(0)); n != 1 || !ok || err != nil {
		t.Errorf("%d %v %v", n, ok, err)
	}
	if _, ok, err := v.Get(b, time.UnixMilli(5)); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
	if _, _, err := viewed[string](r, "n", false).Get(b, time.UnixMilli(5)); err == nil {
		t.Error("a view of another type is none")
	}
}

func TestViewOfSessionsIsByTheirStart(t *testing.T) {
	r := newRig(t, countSessions(5*ms, 100*ms))
	sendAt(r, "k", 1, 4, 20, 30)
	r.commit()
	v := viewed[int64](r, "n", true)
	sameTexts(t, viewText(v.Fetch("k", time.UnixMilli(1), time.UnixMilli(20))), "k[1,4)=2@4 <nil>", "k[20,20)=1@20 <nil>")
	sameTexts(t, viewText(v.FetchAll(time.UnixMilli(21), time.UnixMilli(99))), "k[30,30)=1@30 <nil>")
	if n, ok, err := v.Get("k", time.UnixMilli(1)); n != 2 || !ok || err != nil {
		t.Errorf("%d %v %v", n, ok, err)
	}
}

func TestWindowViewIsOfWindowsAndSessions(t *testing.T) {
	top, err := Build(func(b *Builder) {
		in := b.Stream(texts).GroupByKey()
		in.Windowed(Tumbling(10*ms, 0)).Count("n")
		in.Count("keys")
	})
	if err != nil {
		t.Fatal(err)
	}
	app := &App{topology: top}
	v, err := app.WindowView[string, int64]("n")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range v.FetchAll(time.UnixMilli(0), time.UnixMilli(9)) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("an app that does not run: %v", err)
		}
	}
	for _, store := range []string{"keys", "none"} {
		if _, err := app.WindowView[string, int64](store); !errors.Is(err, ErrNoStore) {
			t.Errorf("%s: %v", store, err)
		}
	}
}
